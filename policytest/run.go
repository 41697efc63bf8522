// SPDX-License-Identifier: Apache-2.0

package policytest

import (
	"context"
	"fmt"
	"slices"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/memstore"
	"github.com/metehq/mete/policy"
)

// A Report has the results of tests. It is a value.
type Report struct {
	Results []Result   // in the order of the tests
	Rules   []Coverage // of every rule that is not off, in the order of the policy
}

// A Result is the result of one test.
type Result struct {
	Test     *Test
	Failures []Failure // empty if the test passed; at most [MaxFailures]
	More     int       // the number of failures that are not listed
}

// MaxFailures bounds the reported failures per test.
const MaxFailures = 20

// Failed returns the number of failed tests.
func (r *Report) Failed() (n int) {
	for i := range r.Results {
		if len(r.Results[i].Failures) > 0 {
			n++
		}
	}
	return n
}

// Requests returns the number of requests that the tests made.
func (r *Report) Requests() (n int) {
	for i := range r.Results {
		n += r.Results[i].Test.Requests()
	}
	return n
}

// Run runs tests of m in sequence. Failed tests are not an error. An error reports that ctx ended, or a problem
// that prevents all tests from running; the report then has the tests that ran before it.
func Run(ctx context.Context, m *policy.Matcher, tests []Test) (Report, error) {
	report := Report{Rules: newCoverage(m)}
	r := runner{matcher: m, coverage: map[*policy.Rule]*Coverage{}}
	for i := range report.Rules {
		r.coverage[report.Rules[i].Rule] = &report.Rules[i]
	}
	for i := range tests {
		result, err := r.runTest(ctx, &tests[i])
		if err != nil {
			return report, fmt.Errorf("policytest: test %q: %w", tests[i].Name, err)
		}
		report.Results = append(report.Results, result)
	}
	return report, nil
}

type runner struct {
	matcher  *policy.Matcher
	coverage map[*policy.Rule]*Coverage

	// For the current test:
	limiter *mete.Limiter
	now     bucket.Instant
	running requests
}

func (r *runner) runTest(ctx context.Context, t *Test) (Result, error) {
	result := Result{Test: t}
	if err := r.begin(t); err != nil {
		return result, err
	}
	for i := range t.Steps {
		s := &t.Steps[i]
		o := outcome{step: s}
		for n := range s.Times {
			if err := r.advance(ctx, s.Instant(n)); err != nil {
				return result, err
			}
			reserved, err := r.limiter.Reserve(ctx, mete.Request{Attributes: s.Attributes(n), Cost: mete.TokensOf(s.Cost), MaxWait: s.MaxWait})
			if err != nil {
				return result, err
			}
			r.cover(&reserved.Decision)
			o.add(n, &reserved.Decision)
			if err := r.start(ctx, s, n, reserved); err != nil {
				return result, err
			}
		}
		for _, f := range o.judge() {
			if len(result.Failures) == MaxFailures {
				result.More++
				continue
			}
			f.complete(t, i, r.matcher)
			result.Failures = append(result.Failures, f)
		}
	}
	return result, nil
}

// begin makes a limiter with full buckets at the begin of t.
func (r *runner) begin(t *Test) error {
	r.now, r.running = bucket.At(t.Begin), nil
	clock := func() bucket.Instant { return r.now }
	store, err := memstore.New(memstore.Config{Now: clock, MaxKeys: t.Requests() * policy.MaxMatches})
	if err != nil {
		return err
	}
	config := mete.Config{Now: clock}
	if slices.ContainsFunc(r.matcher.Rules(), func(rule *policy.Rule) bool { return rule.OnStoreError == policy.OnStoreErrorLocal }) {
		config.Local = store // unused, because the store never fails
	}
	r.limiter, err = mete.New(store, r.matcher, config)
	return err
}
