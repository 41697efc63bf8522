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

// testOptions say which tests of a policy are run.
type testOptions struct {
	Run *regexp.Regexp // those whose names it matches; nil is all
}

// policyTests are what the tests of one policy came to.
type policyTests struct {
	Outcomes []testOutcome // of those that were run, in the order of the file
	Skipped  int           // how many were not to be run
	Requests int           // they made
	Notes    []string      // what the tests leave out, if all were run and passed; and whether the servers differ
}

// A testOutcome is what one test came to.
type testOutcome struct {
	Name     string
	Path     string // JSON Pointer to it
	Requests int
	Failures []testFailure // none where it passed
}

// A testFailure is an expectation that was not met.
type testFailure struct {
	policy.Warning
	Why []string // more lines on how it came to that
}

// runPolicyTests runs the tests of a policy. That some fail is no error.
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
		p.Outcomes = append(p.Outcomes, outcomeOf(&r))
	}
	if p.Skipped == 0 && p.Failed() == 0 {
		p.Notes = report.Gaps()
	}
	if note := hashKeyNote(m); note != "" && len(chosen) > 0 {
		p.Notes = append(p.Notes, note)
	}
	return p, nil
}

// outcomeOf turns the result of one test into places and words.
func outcomeOf(r *policytest.Result) testOutcome {
	o := testOutcome{Name: r.Test.Name, Path: r.Test.Path, Requests: r.Test.Requests()}
	for i, f := range r.Failures {
		reason := fmt.Sprintf("want %s; got %s", f.Want, f.Got)
		if where := f.Where(); where != "" {
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

// Failed returns how many tests failed.
func (p *policyTests) Failed() (n int) {
	for i := range p.Outcomes {
		if len(p.Outcomes[i].Failures) > 0 {
			n++
		}
	}
	return n
}

// Summary says how many passed and failed; it is empty where there are none.
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

// list writes a line for each test.
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
