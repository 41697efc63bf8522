// SPDX-License-Identifier: Apache-2.0

package policytest_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/policytest"
)

const testedRules = `"rules": [
	{"name": "paid", "limit_keys": ["header:x-api-key"], "match": {"jwt:plan": "paid"}, "limits": [
		{"name": "burst", "rps": 10, "burst": 20}, {"name": "day", "algorithm": "fixed_window", "tokens": 1000, "window": "1d"}]},
	{"name": "free", "limit_keys": ["header:x-api-key"], "algorithm_config": {"rps": 1, "burst": 5,
		"staged_actions": [{"threshold": 80, "action": "warn"}]}},
	{"name": "new", "mode": "shadow", "group": "new", "limit_keys": ["ip:address"], "algorithm_config": {"rps": 1, "burst": 5}}],
	"overrides": [{"id": "outage", "action": "block", "match": {"path": "/x"}, "reason": "r", "author": "a", "expires_at": "2100-01-01T00:00:00Z"},
		{"id": "more", "action": "limit", "rules": ["free"], "match": {"header:x-api-key": "k"}, "algorithm": "sliding_log",
		"algorithm_config": {"tokens": 9, "window": "1m"}, "reason": "r", "author": "a", "expires_at": "2100-01-01T00:00:00Z"}]`

// loadTests compiles tests of testedRules.
func loadTests(t *testing.T, tests string) *policy.Matcher {
	t.Helper()
	m, err := policy.Load([]byte(fmt.Sprintf(`{%s, "tests": %s}`, testedRules, tests)), policy.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestTests_WhenRequestsAreMade(t *testing.T) {
	m := loadTests(t, `[
		{"name": "of one step", "times": 3, "every": "10ms", "expect": "allowed"},
		{"name": "of many", "at": "2026-06-01T12:00:00+02:00", "steps": [
			{"after": "1s"},
			{"times": 3, "every": "1m"},
			{"after": "0s"},
			{"at": "1h"},
			{"at": "2026-06-01T12:00:00Z"},
			{"after": "1d"}]}]`)
	if got := testsOf(t, m)[0]; !got.Begin.Equal(policytest.DefaultBegin) || got.Requests() != 3 || got.Steps[0].Path != "/tests/0" || got.Path != "/tests/0" {
		t.Errorf("test of one step: %+v", got)
	}
	second := testsOf(t, m)[1]
	var got []string
	for i := range second.Steps {
		s := &second.Steps[i]
		for n := range s.Times {
			got = append(got, s.Instant(n).Time().Sub(second.Begin).String())
		}
	}
	want := []string{"1s", "1s", "1m1s", "2m1s", "2m1s", "1h0m0s", "2h0m0s", "26h0m0s"}
	if !slices.Equal(got, want) || second.Begin.Format(time.RFC3339) != "2026-06-01T10:00:00Z" || second.Name != "of many" {
		t.Errorf("requests of %q since %v: %v, want %v", second.Name, second.Begin, got, want)
	}
	if got, want := second.Steps[3].Path, "/tests/1/steps/3"; got != want {
		t.Errorf("path of a step = %q, want %q", got, want)
	}
}

func TestTests_Begin(t *testing.T) {
	at := policytest.DefaultBegin
	if week := 7 * 24 * time.Hour; at.Sub(time.Unix(0, 0))%week != 0 || at.Weekday() != time.Thursday {
		t.Errorf("tests begin on %v, want the beginning of a week of fixed windows", at)
	}
}

// A path, a host and the name of a header are normalized like in requests.
func TestTests_Attributes(t *testing.T) {
	m := loadTests(t, `[{"name": "a", "request": {"Header:X-Api-Key": 17, "host": "Example.COM:80", "path": "/a//b/%63;v=1", "jwt:admin": true, "method": "GET"}, "steps": [
		{"with": {"header:x-api-key": "k-{n}", "ip:address": "192.0.2.{n}"}, "times": 255},
		{"without": ["host", "PATH", "jwt:admin"]},
		{"without": "method", "with": {"Query:q": "{n}"}}]}]`)
	steps := testsOf(t, m)[0].Steps
	for _, tt := range []struct {
		step, n int
		want    policy.Map
	}{
		{0, 0, policy.Map{"header:x-api-key": "k-1", "host": "example.com", "path": "/a/b/c", "jwt:admin": "true", "method": "GET", "ip:address": "192.0.2.1"}},
		{0, 254, policy.Map{"header:x-api-key": "k-255", "host": "example.com", "path": "/a/b/c", "jwt:admin": "true", "method": "GET", "ip:address": "192.0.2.255"}},
		{1, 0, policy.Map{"header:x-api-key": "17", "method": "GET"}},
		{2, 0, policy.Map{"header:x-api-key": "17", "host": "example.com", "path": "/a/b/c", "jwt:admin": "true", "query:q": "1"}},
	} {
		if got := steps[tt.step].Attributes(tt.n); !maps.Equal(got, tt.want) {
			t.Errorf("step %d, request %d: %v, want %v", tt.step, tt.n, got, tt.want)
		}
	}
}

func TestTests_Expectations(t *testing.T) {
	some := func(n int) *int { return &n }
	for _, tt := range []struct {
		expect string
		want   policytest.Expectation
	}{
		{`"allowed"`, policytest.Expectation{Allowed: some(10)}},
		{`"denied"`, policytest.Expectation{Allowed: some(0)}},
		{`{"allowed": true}`, policytest.Expectation{Allowed: some(10)}},
		{`{"allowed": false}`, policytest.Expectation{Allowed: some(0)}},
		{`{"allowed": 7}`, policytest.Expectation{Allowed: some(7)}},
		{`{"denied": 7}`, policytest.Expectation{Allowed: some(3)}},
		{`{"denied": true}`, policytest.Expectation{Allowed: some(0)}},
		{`{"denied": "free"}`, policytest.Expectation{Allowed: some(0), Denied: []policytest.Count{{Name: "free", Times: 10}}}},
		{`{"denied": "paid/day"}`, policytest.Expectation{Allowed: some(0), Denied: []policytest.Count{{Name: "paid/day", Times: 10}}}},
		{`{"allowed": 4, "denied": "free"}`, policytest.Expectation{Allowed: some(4), Denied: []policytest.Count{{Name: "free", Times: 6}}}},
		{`{"denied": {"free": 2, "paid": 3}}`, policytest.Expectation{Allowed: some(5), Denied: []policytest.Count{{Name: "free", Times: 2}, {Name: "paid", Times: 3}}}},
		{`{"reason": "sliding_log_exceeded"}`, policytest.Expectation{Allowed: some(0), Reason: "sliding_log_exceeded"}},
		{`{"retry_after": "never"}`, policytest.Expectation{Allowed: some(0), RetryAfter: wait(bucket.Never)}},
		{`{"retry_after": "1m30s"}`, policytest.Expectation{Allowed: some(0), RetryAfter: wait(90 * time.Second)}},
		{`{"wait": "1d"}`, policytest.Expectation{Allowed: some(10), Wait: wait(24 * time.Hour)}},
		{`{"remaining": 2.5}`, policytest.Expectation{Remaining: []policytest.Amount{{Tokens: 2500}}}},
		{`{"cost": {"paid/burst": 1, "paid/day": "0"}}`, policytest.Expectation{Cost: []policytest.Amount{{Limit: "paid/burst", Tokens: 1000}, {Limit: "paid/day"}}}},
		{`{"rule": "paid"}`, policytest.Expectation{Rule: "paid"}},
		{`{"applies": []}`, policytest.Expectation{Applies: []string{}}},
		{`{"applies": "free"}`, policytest.Expectation{Applies: []string{"free"}}},
		{`{"would_deny": "new"}`, policytest.Expectation{WouldDeny: []policytest.Count{{Name: "new", Times: 10}}}},
		{`{"would_deny": []}`, policytest.Expectation{WouldDeny: []policytest.Count{}}},
		{`{"would_deny": {"new": 2}}`, policytest.Expectation{WouldDeny: []policytest.Count{{Name: "new", Times: 2}}}},
		{`{"stage": "80%"}`, policytest.Expectation{Stage: word("80%")}},
		{`{"stage": "none"}`, policytest.Expectation{Stage: word("")}},
		{`{"override": "outage"}`, policytest.Expectation{Override: word("outage")}},
		{`{"override": "none"}`, policytest.Expectation{Override: word("")}},
	} {
		m := loadTests(t, `[{"name": "a", "times": 10, "expect": `+tt.expect+`}]`)
		got := testsOf(t, m)[0].Steps[0].Expect
		if tt.want.Path = "/tests/0/expect"; !reflect.DeepEqual(exported(got), exported(tt.want)) {
			t.Errorf("expect %s: %+v, want %+v", tt.expect, exported(got), exported(tt.want))
		}
	}
}

func wait(d time.Duration) *time.Duration { return &d }

func word(s string) *string { return &s }

// exported is e without what cannot be seen.
func exported(e policytest.Expectation) string {
	data, _ := json.Marshal(e)
	return string(data)
}

func TestExpect_Place(t *testing.T) {
	m := loadTests(t, `[{"name": "a", "steps": [{"expect": {"denied": "free", "remaining": 0}}, {"expect": "denied"}]}]`)
	steps := testsOf(t, m)[0].Steps
	for _, tt := range []struct {
		got, want string
	}{
		{steps[0].Expect.Place("allowed", "denied"), "/tests/0/steps/0/expect/denied"},
		{steps[0].Expect.Place("wait"), "/tests/0/steps/0/expect"},
		{steps[1].Expect.Place("allowed", "denied"), "/tests/0/steps/1/expect"},
	} {
		if tt.got != tt.want {
			t.Errorf("Place = %q, want %q", tt.got, tt.want)
		}
	}
}

// A slip in the name of an attribute would make a test of another request.
func TestTests_UnreadAttribute(t *testing.T) {
	m := loadTests(t, `[{"name": "a", "request": {"header:x-apikey": "k", "header:accept": "*", "path": "/"}, "expect": "allowed"}]`)
	var got []string
	_, warnings, err := policytest.Read(m)
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range warnings {
		if w.Code == "unread-attribute" {
			got = append(got, w.String())
		}
	}
	want := []string{`/tests/0/request/header:x-apikey: no rule reads header:x-apikey; did you mean "header:x-api-key"?`}
	if !slices.Equal(got, want) {
		t.Errorf("warnings %q, want %q", got, want)
	}
}

// A response that no limit reads checks nothing.
func TestTests_UnreadResponse(t *testing.T) {
	m, err := policytest.Load([]byte(`{"rules": [
		{"name": "login", "limit_keys": [], "match": {"path": "/login"}, "rate": "5/1m", "charge_on": {"status": [401]}},
		{"name": "rest", "limit_keys": [], "rate": "5/1m"}],
		"tests": [{"name": "a", "request": {"path": "/login"}, "steps": [
			{"status": 401, "expect": "allowed"}, {"with": {"path": "/Login"}, "status": 401, "expect": "allowed"},
			{"with": {"path": "/"}, "grpc": "INTERNAL"}, {"with": {"path": "/"}, "expect": "allowed"}]}]}`), policy.Options{})
	if err != nil {
		t.Fatal(err)
	}
	_, warnings, err := policytest.Read(m)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, w := range warnings {
		got = append(got, w.Code+" "+w.Path)
	}
	if want := []string{"unread-response /tests/0/steps/1/status", "unread-response /tests/0/steps/2/grpc"}; !slices.Equal(got, want) {
		t.Errorf("warnings %q, want %q", got, want)
	}
}

// Tests make no difference to what a policy decides, and an exception to none to
// them.
func TestTests_AreNoPartOfThePolicy(t *testing.T) {
	with := loadTests(t, `[{"name": "a", "request": {"header:other": "k"}, "expect": {"applies": []}}]`)
	without := loadTests(t, `[]`)
	if got, want := with.Attributes(), without.Attributes(); !slices.Equal(got, want) {
		t.Errorf("attributes with tests %v, without %v", got, want)
	}
	if got := testsOf(t, without); len(got) != 0 {
		t.Errorf("tests of a policy that has none: %v", got)
	}
	other, err := with.WithOverrides(nil, time.Now())
	if err != nil || len(testsOf(t, other)) != 1 {
		t.Errorf("tests after WithOverrides: %d, %v, want 1", len(testsOf(t, other)), err)
	}
}

func TestTests_AreBounded(t *testing.T) {
	repeat := func(n int, text string) string {
		var list []string
		for i := range n {
			list = append(list, strings.ReplaceAll(text, "#", fmt.Sprint(i)))
		}
		return "[" + strings.Join(list, ",") + "]"
	}
	for _, tt := range []struct{ tests, want string }{
		{repeat(policytest.MaxTests+1, `{"name": "#", "expect": "allowed"}`), "tests must have at most 1000 entries"},
		{`[{"name": "a", "steps": ` + repeat(policytest.MaxTestSteps+1, `{}`) + `}]`, "steps must have at most 1000 entries"},
		{repeat(11, `{"name": "#", "times": 100000}`), "make at most 1000000 requests together"},
		{`[{"name": "` + strings.Repeat("x", 201) + `", "expect": "allowed"}]`, "test name must have at most 200 bytes"},
		{`[{"name": "a", "request": {"path": "/` + strings.Repeat("x", 8192) + `"}, "expect": "allowed"}]`, "path must have at most 8192 bytes"},
	} {
		_, _, err := policytest.Read(loadTests(t, tt.tests))
		var es policy.Errors
		if !errors.As(err, &es) || len(es) != 1 || !strings.Contains(es[0].Reason, tt.want) {
			t.Errorf("%.60s…: error %v, want one with %q", tt.tests, err, tt.want)
		}
	}
}

// FuzzTests: any tests are either invalid or can run within their bounds.
func FuzzTests(f *testing.F) {
	for _, seed := range []string{
		`[]`, `{}`, `[{"name": "a", "expect": "allowed"}]`,
		`[{"name": "a", "at": "2026-06-01T12:00:00Z", "request": {"ip:address": "192.0.2.{n}", "path": "/%2e"}, "steps": [{"after": "1s", "times": 3, "every": "1m"},
			{"at": "1h", "without": ["path"], "with": {"host": "A:1"}, "cost": 2.5, "max_wait": "2s", "expect": {"denied": {"free": 1}}}]}]`,
		`[{"name": "a", "times": 3, "expect": {"allowed": 1, "denied": "paid/day", "reason": "blocked", "retry_after": "never", "remaining": {"free": 1.5}, "cost": 1,
			"stage": "80%", "override": "outage", "applies": ["paid"], "would_deny": ["new"], "rule": "free"}}]`,
		`[{"name": "a", "expect": {"wait": "9223372036854775807ns"}, "every": "290w"}]`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, section string) {
		m, err := policy.Load([]byte(fmt.Sprintf(`{%s, "tests": %s}`, testedRules, section)), policy.Options{})
		if err != nil {
			return
		}
		tests, _, err := policytest.Read(m)
		if err != nil {
			return
		}
		for _, test := range tests {
			if n := test.Requests(); n < 1 || n > policytest.MaxTestRequests || test.Name == "" {
				t.Errorf("test %q makes %d requests", test.Name, n)
			}
			last := bucket.At(test.Begin)
			for i := range test.Steps {
				s := &test.Steps[i]
				if s.Instant(0) < last || s.Instant(s.Times-1) < s.Instant(0) || s.Instant(s.Times-1).Time().Year() > 2200 {
					t.Errorf("step %s: from %v to %v, after %v", s.Path, s.Instant(0).Time(), s.Instant(s.Times-1).Time(), last.Time())
				}
				last = s.Instant(s.Times - 1)
				s.Attributes(s.Times - 1)
			}
		}
	})
}
