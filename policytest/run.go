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

// A Report is what tests came to. It is a value.
type Report struct {
	Results []Result   // in the order of the tests
	Rules   []Coverage // every rule of the policy that is not off, in its order
}

// A Result is what one test came to.
type Result struct {
	Test     *Test
	Failures []Failure // none where it passed; at most [MaxFailures]
	More     int       // failures that are not among them
}

// MaxFailures bounds the failures that are told of one test.
const MaxFailures = 20

// Failed returns how many tests failed.
func (r *Report) Failed() (n int) {
	for i := range r.Results {
		if len(r.Results[i].Failures) > 0 {
			n++
		}
	}
	return n
}

// Requests returns how many requests the tests made.
func (r *Report) Requests() (n int) {
	for i := range r.Results {
		n += r.Results[i].Test.Requests()
	}
	return n
}

// Run runs tests, which are of m, one after the other. That a test fails is no
// error: an error says that ctx is done, or what keeps all tests from being run.
// The report is then of the tests that were run.
func Run(ctx context.Context, m *policy.Matcher, tests []Test) (Report, error) {
	report := Report{Rules: newCoverage(m)}
	r := runner{matcher: m, coverage: map[*policy.Rule]*Coverage{}}
	for i := range report.Rules {
		r.coverage[report.Rules[i].Rule] = &report.Rules[i]
	}
	for i := range tests {
		result, err := r.test(ctx, &tests[i])
		if err != nil {
			return report, fmt.Errorf("policytest: test %q: %w", tests[i].Name, err)
		}
		report.Results = append(report.Results, result)
	}
	return report, nil
}

// A runner runs tests of one policy.
type runner struct {
	matcher  *policy.Matcher
	coverage map[*policy.Rule]*Coverage

	// Of the test that is run:
	limiter *mete.Limiter
	now     bucket.Instant
}

// test runs one test.
func (r *runner) test(ctx context.Context, t *Test) (Result, error) {
	result := Result{Test: t}
	if err := r.begin(t); err != nil {
		return result, err
	}
	for i := range t.Steps {
		s := &t.Steps[i]
		o := outcome{step: s}
		for n := range s.Times {
			r.now = s.Instant(n)
			d, err := r.limiter.Take(ctx, mete.Request{Attributes: s.Attributes(n), Cost: mete.TokensOf(s.Cost), MaxWait: s.MaxWait})
			if err != nil {
				return result, err
			}
			r.cover(&d)
			o.add(n, &d)
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

// begin makes a limiter whose buckets are full, at the time when t begins.
func (r *runner) begin(t *Test) error {
	r.now = bucket.At(t.Begin)
	clock := func() bucket.Instant { return r.now }
	store, err := memstore.New(memstore.Config{Now: clock, MaxKeys: t.Requests() * policy.MaxMatches})
	if err != nil {
		return err
	}
	config := mete.Config{Now: clock}
	if slices.ContainsFunc(r.matcher.Rules(), func(rule *policy.Rule) bool { return rule.OnStoreError == policy.StoreErrorLocal }) {
		config.Local = store // which is not used: the store never fails
	}
	r.limiter, err = mete.New(store, r.matcher, config)
	return err
}
