// SPDX-License-Identifier: Apache-2.0

package policytest

import (
	"context"
	"strings"

	"github.com/metehq/mete/policy"
)

// A Tester has the methods of [testing.T] that [Check] needs.
type Tester[T any] interface {
	Helper()
	Context() context.Context
	Run(name string, f func(T)) bool
	Logf(format string, args ...any)
	Errorf(format string, args ...any)
}

// Check runs all tests of m as subtests of t, and logs the rules that they do not cover. It fails if the policy has
// no tests, because it probably lost them before Load.
func Check[T Tester[T]](t T, m *policy.Matcher) {
	t.Helper()
	tests, _, err := Read(m)
	if err != nil {
		t.Errorf("%v", err)
		return
	}
	if len(tests) == 0 {
		t.Errorf("policytest: the policy has no tests")
		return
	}
	whole := Report{Rules: newCoverage(m)}
	for i := range tests {
		t.Run(tests[i].Name, func(t T) {
			t.Helper()
			report, err := Run(t.Context(), m, tests[i:i+1])
			if err != nil {
				t.Errorf("%v", err)
				return
			}
			whole.add(report)
			for _, f := range report.Results[0].Failures {
				t.Errorf("%s: %v\n\t%s", f.Path, f, strings.Join(f.Why, "\n\t"))
			}
			if more := report.Results[0].More; more > 0 {
				t.Errorf("%d more failures are not shown", more)
			}
		})
	}
	if len(whole.Results) < len(tests) {
		return // the -run flag skipped some
	}
	for _, gap := range whole.Gaps() {
		t.Logf("%s", gap)
	}
}

func (r *Report) add(other Report) {
	r.Results = append(r.Results, other.Results...)
	for i := range r.Rules {
		r.Rules[i].Applied += other.Rules[i].Applied
		r.Rules[i].Denied += other.Rules[i].Denied
	}
}
