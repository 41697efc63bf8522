// SPDX-License-Identifier: Apache-2.0

package lint_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/policy/lint"
)

var lintNow = time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)

// Each policy has warnings with a code, a path and a part of the text.
func TestLint(t *testing.T) {
	const (
		strict = `"algorithm_config": {"rps": 10, "burst": 20}`
		loose  = `"algorithm_config": {"rps": 1000, "burst": 2000}`
		ip     = `"limit_keys": ["ip:address"]`
		user   = `"limit_keys": ["jwt:sub"]`
		paid   = `"match": {"jwt:plan": "enterprise"}`
	)
	for name, tc := range map[string]struct {
		rules string   // or a whole file
		want  []string // "code path: part of the reason"
	}{
		"tiers, as they should be": {`{"name": "paid", ` + user + `, ` + paid + `, ` + loose + `}, {"name": "free", ` + user + `, ` + strict + `}`, nil},
		"free is for all, in a group of its own": {`{"name": "paid", "group": "a", ` + user + `, ` + paid + `, ` + loose + `}, {"name": "free", "group": "b", ` + user + `, ` + strict + `}`,
			[]string{`catch-all-tier /rules/1: rule "free" has no match, so it also counts the requests of rule "paid", and allows less: 20 at once and 10 per second after that`}},
		"free is for all, by another key": {`{"name": "paid", "limit_keys": ["jwt:org"], ` + paid + `, ` + loose + `}, {"name": "free", ` + user + `, ` + strict + `}`,
			[]string{`catch-all-tier /rules/1: rule "free" has no match`}},
		"free is for all, in another policy": {`{"policies": [{"id": "a", "spec": {"rules": [{"name": "paid", ` + user + `, ` + paid + `, ` + loose + `}]}},
			{"id": "b", "spec": {"rules": [{"name": "free", ` + user + `, ` + strict + `}]}}]}`,
			[]string{`catch-all-tier /policies/1/spec/rules/0: rule "free" has no match`}},
		"a lower limit on a path beside one on all": {`{"name": "login", "group": "login", ` + ip + `, "match": {"path": ["/login", "/login/"]}, ` + strict + `}, {"name": "all", ` + ip + `, ` + loose + `}`, nil},
		"a higher limit on a path beside one on all": {`{"name": "search", "group": "s", ` + ip + `, "match": {"path": "/search"}, ` + loose + `}, {"name": "some", ` + ip + `, "match": {"path": "/*"}, ` + strict + `}`,
			[]string{`overlapping-rules /rules/0: rule "search" is never reached: rule "some" counts the same requests and allows no more than 20 at once`}},
		"a user may do more than all users": {`{"name": "user", ` + user + `, ` + loose + `}, {"name": "all", "limit_keys": [], ` + strict + `}`,
			[]string{`overlapping-rules /rules/0: rule "user" is never reached`}},
		"nested, as they should be": {`{"name": "user", ` + user + `, ` + strict + `}, {"name": "all", "limit_keys": [], ` + loose + `}`, nil},
		"twice the same": {`{"name": "a", "group": "a", ` + user + `, ` + strict + `}, {"name": "b", "group": "b", ` + user + `, ` + strict + `}`,
			[]string{`overlapping-rules /rules/1: rule "b" is never reached`}},
		"the stricter is in shadow":       {`{"name": "user", ` + user + `, ` + loose + `}, {"name": "all", "limit_keys": [], "mode": "shadow", ` + strict + `}`, nil},
		"the stricter is preempted":       {`{"name": "user", ` + user + `, ` + loose + `}, {"name": "vip", "group": "g", ` + user + `, ` + paid + `, "algorithm_config": {"rps": 1, "burst": 1}}, {"name": "all", "group": "g", ` + ip + `, ` + strict + `}`, nil},
		"the stricter counts other costs": {`{"name": "user", ` + user + `, ` + loose + `}, {"name": "all", "limit_keys": [], "algorithm_config": {"rps": 10, "burst": 20, "fixed_cost": 2}}`, nil},

		"an hour that a minute excludes": {`{"name": "r", ` + ip + `, "limits": [{"algorithm": "fixed_window", "tokens": 10, "window": "1m"}, {"name": "hour", "algorithm": "fixed_window", "tokens": 1000, "window": "1h"}]}`,
			[]string{`contradictory-rates /rules/0/limits/1: limit "r/hour" is never reached: "r/1" allows no more than 600 in 1h`}},
		"a minute that an hour excludes": {`{"name": "r", ` + ip + `, "limits": [{"algorithm": "sliding_log", "tokens": 2000, "window": "1m"}, {"algorithm": "sliding_log", "tokens": 1000, "window": "1h"}]}`,
			[]string{`contradictory-rates /rules/0/limits/0: limit "r/1" is never reached: "r/2" allows no more than 1000 in 1m`}},
		"a minute and a day": {`{"name": "r", ` + ip + `, "limits": [{"rate": "60/1m", "burst": 60}, {"algorithm": "fixed_window", "tokens": 10000, "window": "1d"}]}`, nil},
		"a template that a prefix contains": {`{"name": "r", ` + ip + `, "match": {"path": ["/users/*", "/users/{id}"]}, ` + strict + `}`,
			[]string{`idle-template /rules/0: the template "/users/{id}" of rule "r" matches only paths that "/users/*" matches`}},
		"a template that a template contains": {`{"name": "r", ` + ip + `, "match": {"path": ["/a/{x}/c", "/a/{x}/c/{$}", "/a/{x}/{y}", "/a/{x}/{y}/{$}", "/b/{x}", "/b/{x}/{$}", "/{z}/{$}"]}, ` + strict + `}`,
			[]string{`idle-template /rules/0: the template "/a/{x}/c" of rule "r" matches only paths that "/a/{x}/{y}" matches`, `idle-template /rules/0: the template "/a/{x}/c/{$}" of rule "r"`}},
		"a penalty that never starts": {`{"name": "r", ` + user + `, "algorithm_config": {"rps": 1, "burst": 0, "max_reserved": 5, "penalty": "1h"}}`,
			[]string{`reservations-only /rules/0/algorithm_config/burst: limit "r" has a burst of 0`, `idle-field /rules/0/algorithm_config: the penalty of limit "r" never starts`}},
		"templates beside each other": {`{"name": "r", ` + ip + `, "match": {"path": ["/a/{x}", "/a/{x}/{$}", "/b", "/b/", "/c/*"]}, ` + strict + `}`, nil},
		"two of the same": {`{"name": "r", ` + ip + `, "limits": [{"rps": 1, "burst": 5}, {"rps": 1, "burst": 5}]}`,
			[]string{`contradictory-rates /rules/0/limits/1: limit "r/2" is never reached`}},
		"pace and burst": {`{"name": "r", ` + ip + `, "limits": [{"rps": 100, "burst": 1}, {"rps": 10, "burst": 50}]}`, nil},

		"costs above the burst": {`{"name": "r", ` + user + `, "algorithm_config": {"rps": 1, "burst": 20, "cost_source": "attribute:jwt:cost", "max_cost": 50}}`,
			[]string{`impossible-cost /rules/0/algorithm_config/max_cost: limit "r" admits a cost of 20 at most`}},
		"a queue has room, too": {`{"name": "r", ` + user + `, "algorithm": "leaky_bucket", "algorithm_config": {"rps": 1, "queue": 49, "cost_source": "attribute:jwt:cost", "max_cost": 50}}`, nil},
		"default below the minimum": {`{"name": "r", ` + user + `, "limits": [{"algorithm_config": {"rps": 1, "burst": 20, "cost_source": "attribute:jwt:cost", "min_cost": 5, "default_cost": 2}}]}`,
			[]string{`clamped-cost /rules/0/limits/0/algorithm_config/default_cost: a default_cost of 2 is not between min_cost and max_cost: requests cost 5`}},

		"tokens of all requests": {`{"name": "r", ` + user + `, "algorithm": "token_bucket_llm", "tokens_per_minute": 5000}`,
			[]string{`unmatched-tokens /rules/0: rule "r" counts tokens`}},
		"tokens of models": {`{"name": "r", ` + user + `, "match": {"ai:model": "*"}, "algorithm": "token_bucket_llm", "tokens_per_minute": 5000}`, nil},
		"tokens that no request can have": {`{"name": "r", ` + user + `, "match": {"ai:model": "*"}, "algorithm": "token_bucket_llm", "tokens_per_minute": 500}`,
			[]string{`unaffordable-request /rules/0: a request that names no max_tokens costs at least 1001`}},
		"off": {`{"name": "r", ` + user + `, "mode": "off", ` + strict + `}`, []string{`rule-off /rules/0: rule "r" is off`}},
		"weeks": {`{"name": "r", ` + ip + `, "algorithm": "fixed_window", "algorithm_config": {"tokens": 5, "window": "1w"}}`,
			[]string{`week-start /rules/0/algorithm_config: the weeks of limit "r" begin on Thursdays`}},
		"weeks from Monday": {`{"name": "r", ` + ip + `, "algorithm": "fixed_window", "algorithm_config": {"tokens": 5, "window": "1w", "start": "4d"}}`, nil},
		"weeks of each key": {`{"name": "r", ` + ip + `, "algorithm": "fixed_window", "algorithm_config": {"tokens": 5, "window": "1w", "anchor": "key"}}`, nil},
		"a budget's week":   {`{"name": "r", ` + ip + `, "algorithm": "cost_based", "algorithm_config": {"budget": 5, "period": "7d"}}`, nil},
		"an address of headers": {`{"name": "r", "limit_keys": ["header:X-Forwarded-For"], "on_missing": "empty", ` + strict + `}`,
			[]string{`spoofable-key /rules/0/limit_keys/0: a client can send a new header:x-forwarded-for`}},
		"a browser": {`{"name": "r", "limit_keys": ["ip:address", "header:user-agent"], "on_missing": "empty", ` + strict + `}`,
			[]string{`spoofable-key /rules/0/limit_keys/1: a client can send a new header:user-agent`}},
		"every path": {`{"name": "r", "limit_keys": ["ip:address", "path"], ` + strict + `}`,
			[]string{`path-key /rules/0/limit_keys/1: every path has its own bucket under rule "r"`}},
		"every path of many":  {`{"name": "r", "limit_keys": ["path"], "match": {"path": "/users/*"}, ` + strict + `}`, []string{`path-key /rules/0/limit_keys/0`}},
		"some paths, by name": {`{"name": "r", "limit_keys": ["path"], "match": {"path": ["/a", "/a/", "/b.txt"]}, ` + strict + `}`, nil},

		"a header to leave out": {`{"name": "r", "limit_keys": ["header:x-customer"], ` + strict + `}`,
			[]string{`missing-bypass /rules/0: no rule applies to requests without header:x-customer: neither "r"`}},
		"a header to leave out, in several tiers": {`{"name": "a", "limit_keys": ["header:k"], ` + paid + `, ` + strict + `}, {"name": "b", "limit_keys": ["header:k"], ` + strict + `}`,
			[]string{`missing-bypass /rules/0`}},
		"one that denies":             {`{"name": "r", "limit_keys": ["header:k"], "on_missing": "deny", ` + strict + `}`, nil},
		"one for the others":          {`{"name": "r", "limit_keys": ["header:k"], ` + strict + `}, {"name": "others", ` + ip + `, "match": {"header:k": {"not": "*"}}, ` + strict + `}`, nil},
		"one that is in shadow":       {`{"name": "r", "limit_keys": ["header:k"], ` + strict + `}, {"name": "others", ` + ip + `, "mode": "shadow", ` + strict + `}`, []string{`missing-bypass /rules/0`}},
		"one for some of the others":  {`{"name": "r", "limit_keys": ["header:k"], ` + strict + `}, {"name": "others", ` + ip + `, "match": {"path": "/a"}, ` + strict + `}`, []string{`missing-bypass /rules/0`}},
		"one that is meant for those": {`{"name": "r", "limit_keys": ["header:k"], "match": {"header:k": "*"}, ` + strict + `}`, nil},
		"a part of a key":             {`{"name": "user", "limit_keys": ["header:t", "header:u"], ` + strict + `}, {"name": "tenant", "limit_keys": ["header:t"], "on_missing": "deny", "algorithm_config": {"rps": 99, "burst": 200}}`, nil},
		"each needs the other's":      {`{"name": "a", "limit_keys": ["header:a"], ` + strict + `}, {"name": "b", "limit_keys": ["header:b"], ` + strict + `}`, []string{`missing-bypass /rules/0`, `missing-bypass /rules/1`}},
		"a fallback_limit":            {`{"rules": [{"name": "r", "limit_keys": ["header:k"], ` + strict + `}], "fallback_limit": {` + strict + `}}`, nil},

		"an exception of long ago": {`{"rules": [{"name": "r", ` + ip + `, ` + strict + `}], "kill_switches": [{"scope_key": "header:x", "scope_value": "y", "reason": "spam", "expires_at": "2025-03-01T00:00:00Z"}]}`,
			[]string{`expired-override /kill_switches/0/expires_at: the override expired 365 days ago`}},
		"an exception of last night": {`{"rules": [{"name": "r", ` + ip + `, ` + strict + `}], "kill_switches": [{"scope_key": "header:x", "scope_value": "y", "reason": "spam", "expires_at": "2026-02-28T20:30:00Z"}]}`,
			[]string{`expired-override /kill_switches/0/expires_at: the override expired 3h30m ago`}},
		"an exception for years": {`{"rules": [{"name": "r", ` + ip + `, ` + strict + `}], "overrides": [{"id": "x", "action": "allow", "match": {"ip:address": "192.0.2.1"},
			"reason": "partner", "author": "ann", "expires_at": "2030-01-01T00:00:00Z"}], "kill_switches": [{"scope_key": "header:x", "scope_value": "y", "reason": "spam", "expires_at": "2026-04-01T00:00:00Z"}],
			"break_glass": {"enabled": false, "reason": "x", "expires_at": "2040-01-01T00:00:00Z"}}`,
			[]string{`long-override /overrides/0/expires_at: the override stays active for another 1402 days`}},
	} {
		text := tc.rules
		if !strings.HasPrefix(text, `{"rules"`) && !strings.HasPrefix(text, `{"policies"`) {
			text = `{"rules": [` + text + `]}`
		}
		m, err := policy.Load([]byte(text), policy.Options{Now: lintNow})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		got := lint.Check(m, lintNow)
		same := len(got) == len(tc.want)
		for i := 0; same && i < len(got); i++ {
			same = strings.HasPrefix(got[i].Code+" "+got[i].Path+": "+got[i].Reason, tc.want[i])
		}
		if !same {
			t.Errorf("%s: warnings\n%v\nwant\n%v", name, got, strings.Join(tc.want, "\n"))
		}
	}
}

// Every code that the sources give has its kind, and every kind is given.
func TestKinds(t *testing.T) {
	var files []string
	for _, pattern := range []string{"*.go", "../*.go", "../../policytest/*.go"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, found...)
	}
	given := map[string]bool{}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") || file == "kinds.go" {
			continue
		}
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`warn\(.*?"([a-z]+(?:-[a-z]+)+)"`).FindAllSubmatch(source, -1) {
			given[string(m[1])] = true
		}
	}
	var codes []string
	for _, k := range lint.Kinds() {
		codes = append(codes, k.Code)
		if k.Summary == "" || !strings.HasSuffix(k.Why, ".") || lint.KindOf(policy.Warning{Code: k.Code}) != k {
			t.Errorf("%+v: says too little, or is not the kind of its code", k)
		}
		if !given[k.Code] {
			t.Errorf("%s: nothing gives it", k.Code)
		}
		delete(given, k.Code)
	}
	if !slices.IsSorted(codes) {
		t.Errorf("codes %q are not in order", codes)
	}
	for code := range given {
		t.Errorf("%s is given, and is no kind", code)
	}
}

// Thousands of findings of one kind are told a hundred times.
func TestLint_Bounded(t *testing.T) {
	var rules []string
	for i := range 1000 {
		rules = append(rules, fmt.Sprintf(`{"name": "r%d", "limit_keys": [], "mode": "off", "algorithm_config": {"rps": 1, "burst": 1}, "match": {"path": "/%[1]d"}}`, i))
	}
	m, err := policy.Load([]byte(`{"rules": [`+strings.Join(rules, ",")+`]}`), policy.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if got := len(lint.Check(m, lintNow)); got != 100 {
		t.Errorf("%d warnings, want 100", got)
	}
}
