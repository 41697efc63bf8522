// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"
	"io"
	"regexp"
	"strings"

	"github.com/metehq/mete/internal/prose"
	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/policytest"
)

type testOptions struct {
	Run *regexp.Regexp // matches names of tests; nil selects all
}

type policyTests struct {
	Outcomes []testOutcome // in the order of the file
	Skipped  int           // excluded by testOptions
	Requests int           // total requests in the tests
	Notes    []string      // rules without tests if all tests passed, and rules that need the servers' hash_key
}

type testOutcome struct {
	Name     string
	Path     string // JSON Pointer to the test
	Requests int
	Failures []testFailure // empty if the test passed
}

// A testFailure is an expectation that the policy did not meet.
type testFailure struct {
	policy.Warning
	Why []string // lines that explain the result
}

// runPolicyTests runs the tests of a policy. Failed tests are part of the result and not an error.
func runPolicyTests(ctx context.Context, m *policy.Matcher, o testOptions) (policyTests, error) {
	all, _, err := policytest.Read(m)
	if err != nil {
		return policyTests{}, err
	}
	var chosen []policytest.Test
	for _, t := range all {
		if o.Run == nil || o.Run.MatchString(t.Name) {
			chosen = append(chosen, t)
		}
	}
	report, err := policytest.Run(ctx, m, chosen)
	if err != nil {
		return policyTests{}, err
	}
	p := policyTests{Requests: report.Requests(), Skipped: len(all) - len(chosen)}
	for _, r := range report.Results {
		p.Outcomes = append(p.Outcomes, newTestOutcome(&r))
	}
	if p.Skipped == 0 && p.Failed() == 0 {
		p.Notes = report.Gaps()
	}
	if note := hashKeyNote(m); note != "" && len(chosen) > 0 {
		p.Notes = append(p.Notes, note)
	}
	return p, nil
}

func newTestOutcome(r *policytest.Result) testOutcome {
	o := testOutcome{Name: r.Test.Name, Path: r.Test.Path, Requests: r.Test.Requests()}
	for i, f := range r.Failures {
		reason := fmt.Sprintf("want %s; got %s", f.Want, f.Got)
		if where := f.Place(); where != "" {
			reason = where + ": " + reason
		}
		failure := testFailure{Warning: policy.Warning{Path: f.Path, Code: codeFailed, Reason: reason}, Why: f.Why}
		if last := i == len(r.Failures)-1; last && r.More > 0 {
			failure.Why = append(failure.Why, prose.Count(r.More, "more failure")+" of this test")
		}
		o.Failures = append(o.Failures, failure)
	}
	return o
}

func (p *policyTests) Failed() (n int) {
	for i := range p.Outcomes {
		if len(p.Outcomes[i].Failures) > 0 {
			n++
		}
	}
	return n
}

// Summary counts the tests that passed, failed and did not run. It is empty if the policy has no tests.
func (p *policyTests) Summary() string {
	failed := p.Failed()
	var parts []string
	if passed := len(p.Outcomes) - failed; passed > 0 {
		parts = append(parts, fmt.Sprintf("%d passed", passed))
	}
	if failed > 0 {
		parts = append(parts, fmt.Sprintf("%d failed", failed))
	}
	if p.Skipped > 0 {
		parts = append(parts, fmt.Sprintf("%d not run", p.Skipped))
	}
	if len(parts) == 0 {
		return ""
	}
	return "tests: " + strings.Join(parts, ", ")
}

func (p *policyTests) list(w io.Writer, paint painter) {
	for i := range p.Outcomes {
		o := &p.Outcomes[i]
		word := paint.green("ok") + "  "
		if len(o.Failures) > 0 {
			word = paint.red("FAIL")
		}
		fmt.Fprintf(w, "  %s  %s (%s)\n", word, o.Name, prose.Count(o.Requests, "request"))
	}
}
