// SPDX-License-Identifier: Apache-2.0

package policytest_test

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/policytest"
)

var update = flag.Bool("update", false, "rewrite the expected failures in testdata")

// load compiles testdata/policy.json with tests.
func load(t testing.TB, tests string) *policy.Matcher {
	t.Helper()
	text, err := os.ReadFile("testdata/policy.json")
	if err != nil {
		t.Fatal(err)
	}
	return compile(t, string(bytes.ReplaceAll(text, []byte("TESTS"), []byte(tests))))
}

func compile(t testing.TB, text string) *policy.Matcher {
	t.Helper()
	m, err := policy.Load([]byte(text), policy.Options{HashKey: []byte("test")})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func run(t testing.TB, m *policy.Matcher) policytest.Report {
	t.Helper()
	report, err := policytest.Run(t.Context(), m, testsOf(t, m))
	if err != nil {
		t.Fatal(err)
	}
	return report
}

func read(t testing.TB, file string) string {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestRun_Passing(t *testing.T) {
	m := load(t, read(t, "testdata/passing.json"))
	report := run(t, m)
	for _, r := range report.Results {
		for _, f := range r.Failures {
			t.Errorf("%v\n\t%s", f, strings.Join(f.Why, "\n\t"))
		}
	}
	if got, want := len(report.Results), len(testsOf(t, m)); got != want || report.Failed() != 0 {
		t.Errorf("%d results, %d failed, want %d and none", got, report.Failed(), want)
	}
}

// Every expectation fails once, with an explanation. Update the texts with go test -update.
func TestRun_Failing(t *testing.T) {
	report := run(t, load(t, read(t, "testdata/failing.json")))
	var got strings.Builder
	for _, r := range report.Results {
		if len(r.Failures) == 0 {
			t.Errorf("test %q passes", r.Test.Name)
		}
		for _, f := range r.Failures {
			fmt.Fprintf(&got, "%s: %v\n", f.Path, f)
			for _, line := range f.Why {
				fmt.Fprintf(&got, "    %s\n", line)
			}
		}
	}
	const golden = "testdata/failing.txt"
	if *update {
		if err := os.WriteFile(golden, []byte(got.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if want := read(t, golden); got.String() != want {
		t.Errorf("failures are\n%s\nwant\n%s", got.String(), want)
	}
}

// A failure has its place for programs.
func TestRun_Place(t *testing.T) {
	report := run(t, load(t, `[{"name": "a", "request": {"header:x-user": "u"}, "steps": [
		{"times": 3, "expect": "allowed"}, {"after": "250ms", "times": 4, "every": "10ms", "expect": {"allowed": true}}]}]`))
	f := report.Results[0].Failures[0]
	if f.Test != "a" || f.Step != 2 || f.Request != 3 || f.Times != 4 || f.After.String() != "270ms" || f.Path != "/tests/0/steps/1/expect/allowed" {
		t.Errorf("failure of %q at step %d, request %d of %d, after %v, at %s", f.Test, f.Step, f.Request, f.Times, f.After, f.Path)
	}
	if got, want := f.Place(), "step 2, request 3 of 4, after 270ms"; got != want {
		t.Errorf("Where = %q, want %q", got, want)
	}
}

// A test knows nothing of those before it, and the clock is its own.
func TestRun_TestsAreIndependent(t *testing.T) {
	one := `{"name": "#", "request": {"header:x-user": "u"}, "times": 6, "expect": {"allowed": 5}}`
	m := load(t, "["+strings.ReplaceAll(one, "#", "a")+","+strings.ReplaceAll(one, "#", "b")+"]")
	for range 2 {
		if report := run(t, m); report.Failed() != 0 || report.Requests() != 12 {
			t.Errorf("%d failed of %d requests, want none of 12", report.Failed(), report.Requests())
		}
	}
}

func TestRun_BoundsFailures(t *testing.T) {
	step := `{"expect": {"denied": true, "rule": "paid"}}`
	report := run(t, load(t, `[{"name": "a", "steps": [`+strings.Repeat(step+",", 29)+step+`]}]`))
	r := report.Results[0]
	if len(r.Failures) != policytest.MaxFailures || r.More != 60-policytest.MaxFailures || report.Failed() != 1 {
		t.Errorf("%d failures and %d more of %d tests, want %d and %d of 1", len(r.Failures), r.More, report.Failed(), policytest.MaxFailures, 60-policytest.MaxFailures)
	}
}

func TestRun_Context(t *testing.T) {
	m := load(t, `[{"name": "a", "times": 10, "expect": "allowed"}]`)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	report, err := policytest.Run(ctx, m, testsOf(t, m))
	if !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), `"a"`) || len(report.Results) != 0 {
		t.Errorf("Run with a context that is done: %d results, %v", len(report.Results), err)
	}
}

func TestReport_Gaps(t *testing.T) {
	for _, tt := range []struct {
		tests string
		want  []string
	}{
		{`[]`, nil},
		{`[{"name": "a", "request": {"header:x-user": "u"}, "times": 6, "expect": {"allowed": 5}}]`, []string{
			"4 of 7 rules apply to no request of any test: paid, tenant, upload, weighted"}},
		{`[{"name": "a", "request": {"header:x-user": "u", "path": "/upload"}, "times": 2, "expect": "allowed"},
			{"name": "b", "request": {"path": "/tenants"}, "expect": "denied"}]`, []string{
			"2 of 7 rules apply to no request of any test: paid, weighted",
			"4 of 7 rules deny no request in any test: free, new, newer, upload"}},
	} {
		report := run(t, load(t, tt.tests))
		if got := report.Gaps(); !slices.Equal(got, tt.want) {
			t.Errorf("gaps of %s: %q, want %q", tt.tests, got, tt.want)
		}
	}
}

// Gaps shortens long lists of rules.
func TestReport_GapsAreBounded(t *testing.T) {
	var rules []string
	for i := range 30 {
		rules = append(rules, fmt.Sprintf(`{"name": "r%d", "limit_keys": [], "match": {"path": "/%d"}, "algorithm_config": {"rps": 1, "burst": 1}}`, i, i))
	}
	report := run(t, compile(t, `{"rules": [`+strings.Join(rules, ",")+`], "tests": [{"name": "a", "request": {"path": "/7"}, "times": 2, "expect": "denied"}]}`))
	want := "29 of 30 rules apply to no request of any test: r0, r1, r2, r3, r4, r5, r6, r8, r9, r10 and 19 more"
	if got := report.Gaps(); len(got) != 1 || got[0] != want {
		t.Errorf("gaps %q, want %q", got, want)
	}
	why := report.Results[0].Failures[0].Why
	if last := why[len(why)-1]; len(why) > 3 || last != "not applied: r0, r1, r2, r3, r4, r5, r6, r8, r9, r10 and 19 more" {
		t.Errorf("a failure says why in %d lines, the last of which is %q", len(why), last)
	}
}

// A million requests, as many as a file can have.
func BenchmarkRun(b *testing.B) {
	m := load(b, `[{"name": "a", "request": {"header:x-user": "u", "path": "/upload"}, "times": 100000, "every": "1ms", "expect": {"allowed": 105, "denied": "free"}}]`)
	for b.Loop() {
		run(b, m)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*100_000), "ns/request")
}
