// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/policy"
)

// today is when overrides of these tests are looked at; they expire a minute later.
var today = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// overridden has rules for a key, for a network, and for all.
const overridden = `{"rules": [
	{"name": "user", "limit_keys": ["header:x-user"], "algorithm_config": {"rps": 1, "burst": 10}},
	{"name": "net", "limit_keys": ["ip:address", "header:x-user"], "limits": [
		{"name": "fast", "rps": 1, "burst": 3}, {"name": "slow", "algorithm": "fixed_window", "tokens": 50, "window": "1d"}]},
	{"name": "slotted", "group": "slotted", "limit_keys": ["header:x-user"], "slot_by": "header:x-user", "algorithm_config": {"rps": 1, "burst": 10}},
	{"name": "all", "group": "all", "limit_keys": [], "algorithm_config": {"rps": 1000, "burst": 1000}}
]%s}`

// override is the short form of an override in tests, without the author.
func override(body string) string {
	return `{` + body + `, "reason": "r", "author": "a", "expires_at": "2026-11-21T12:01:00Z"}`
}

// inFile loads overridden with overrides in it.
func inFile(t testing.TB, bodies ...string) *policy.Matcher {
	t.Helper()
	for i := range bodies {
		bodies[i] = override(fmt.Sprintf(`"id": "o%d", %s`, i, bodies[i]))
	}
	rest := `, "overrides": [` + strings.Join(bodies, ", ") + `]`
	m, err := policy.Load(fmt.Appendf(nil, overridden, rest), policy.Options{Now: today, HashKey: []byte("test")})
	if err != nil {
		t.Fatalf("%s: %v", bodies, err)
	}
	return m
}

// atRunTime loads overridden, and puts the overrides beside it later.
func atRunTime(t testing.TB, bodies ...string) *policy.Matcher {
	t.Helper()
	m, err := plain(t).WithOverrides(parsed(t, bodies...), today)
	if err != nil {
		t.Fatalf("%s: %v", bodies, err)
	}
	return m
}

func plain(t testing.TB) *policy.Matcher {
	t.Helper()
	m, err := policy.Load(fmt.Appendf(nil, overridden, ""), policy.Options{Now: today, HashKey: []byte("test")})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func parsed(t testing.TB, bodies ...string) []policy.Override {
	t.Helper()
	var list []policy.Override
	for i, body := range bodies {
		o, err := policy.ParseOverride([]byte(override(fmt.Sprintf(`"id": "o%d", %s`, i, body))))
		if err != nil {
			t.Fatalf("%s: %v", body, err)
		}
		list = append(list, o)
	}
	return list
}

// outcome describes the decision about a request: the override that blocks or allows it, or the limits with
// their capacities. An asterisk marks limits in shadow.
func outcome(m *policy.Matcher, attrs policy.Map, now time.Time) string {
	matches, v := m.Match(nil, attrs, 0, bucket.At(now))
	switch {
	case v.Block != nil:
		return "blocked by " + v.Block.ID
	case v.Allow != nil:
		return fmt.Sprintf("allowed by %s under %d limits", v.Allow.ID, len(matches))
	case v.Missing != nil:
		return "lacks for " + v.Missing.Name
	}
	var all []string
	for _, match := range matches {
		text := fmt.Sprintf("%s:%d", match.Limit.Name, match.Limit.Bucket.Capacity().Whole())
		if match.Shadow {
			text += "*"
		}
		all = append(all, text)
	}
	return strings.Join(all, " ")
}

func TestOverride(t *testing.T) {
	ann := policy.Map{"header:x-user": "ann", "ip:address": "192.0.2.7", "path": "/x"}
	bob := policy.Map{"header:x-user": "bob", "ip:address": "192.0.2.7", "path": "/y"}
	nobody := policy.Map{"path": "/x"}
	const asIs = "user:10 net/fast:3 net/slow:50 slotted:10 all:1000"
	for _, tt := range []struct {
		name      string
		overrides []string
		ann, bob  string // who they are for, and the others
		nobody    string
	}{
		{"none", nil, asIs, asIs, "all:1000"},
		{"block", []string{`"action": "block", "match": {"header:x-user": "ann"}`}, "blocked by o0", asIs, "all:1000"},
		{"block a list", []string{`"action": "block", "match": {"header:x-user": ["ann", "cyd"]}`}, "blocked by o0", asIs, "all:1000"},
		{"block by a value that no rule reads", []string{`"action": "block", "match": {"path": "/x"}`}, "blocked by o0", asIs, "blocked by o0"},
		{"block two clauses", []string{`"action": "block", "match": {"path": "/x", "header:x-user": "bob"}`}, asIs, asIs, "all:1000"},
		{"block a network", []string{`"action": "block", "match": {"ip:address": "192.0.2.0/25"}`}, "blocked by o0", "blocked by o0", "all:1000"},
		{"block a key", []string{`"action": "block", "key": "user:x-user=ann"`}, "blocked by o0", asIs, "all:1000"},
		{"allow", []string{`"action": "allow", "match": {"header:x-user": "ann"}`}, "allowed by o0 under 0 limits", asIs, "all:1000"},
		{"allow by a rule", []string{`"action": "allow", "rules": ["user"], "match": {"header:x-user": "ann"}`},
			"net/fast:3 net/slow:50 slotted:10 all:1000", asIs, "all:1000"},
		{"allow by two rules", []string{`"action": "allow", "rules": ["user", "net"], "match": {"header:x-user": "ann"}`}, "slotted:10 all:1000", asIs, "all:1000"},
		{"limit", []string{`"action": "limit", "rules": ["user"], "match": {"header:x-user": "ann"}, "algorithm_config": {"rps": 2, "burst": 99}`},
			strings.Replace(asIs, "user:10", "user:99", 1), asIs, "all:1000"},
		{"limit all buckets", []string{`"action": "limit", "rules": ["user"], "match": {}, "algorithm_config": {"rps": 2, "burst": 99}`},
			strings.Replace(asIs, "user:10", "user:99", 1), strings.Replace(asIs, "user:10", "user:99", 1), "all:1000"},
		{"limit the only bucket", []string{`"action": "limit", "rules": ["all"], "algorithm_config": {"rps": 2, "burst": 5}`},
			strings.Replace(asIs, "all:1000", "all:5", 1), strings.Replace(asIs, "all:1000", "all:5", 1), "all:5"},
		{"limit of one of several", []string{`"action": "limit", "rules": ["net"], "match": {"header:x-user": "ann"}, "limits": [{"name": "slow", "rps": 1, "burst": 70}]`},
			strings.Replace(asIs, "slow:50", "slow:70", 1), asIs, "all:1000"},
		{"limit of several", []string{`"action": "limit", "rules": ["net"], "match": {"header:x-user": "ann"}, "limits": [
			{"name": "fast", "rps": 1, "burst": 30}, {"name": "slow", "algorithm": "fixed_window", "tokens": 500, "window": "1d"}]`},
			strings.NewReplacer("fast:3", "fast:30", "slow:50", "slow:500").Replace(asIs), asIs, "all:1000"},
		{"shadow", []string{`"action": "shadow"`}, "user:10* net/fast:3* net/slow:50* slotted:10* all:1000*", "user:10* net/fast:3* net/slow:50* slotted:10* all:1000*", "all:1000*"},
		{"shadow for some", []string{`"action": "shadow", "match": {"header:x-user": "ann"}`}, "user:10* net/fast:3* net/slow:50* slotted:10* all:1000*", asIs, "all:1000"},
		{"break glass", []string{`"action": "break_glass"`}, "allowed by o0 under 0 limits", "allowed by o0 under 0 limits", "allowed by o0 under 0 limits"},
	} {
		for how, m := range map[string]*policy.Matcher{"in the file": inFile(t, slices.Clone(tt.overrides)...), "at run time": atRunTime(t, tt.overrides...)} {
			for who, want := range map[string]string{"ann": tt.ann, "bob": tt.bob, "nobody": tt.nobody} {
				attrs := map[string]policy.Map{"ann": ann, "bob": bob, "nobody": nobody}[who]
				if got := outcome(m, attrs, today); got != want {
					t.Errorf("%s, %s, %s: %s, want %s", tt.name, how, who, got, want)
				}
				want = map[bool]string{true: "all:1000", false: asIs}[who == "nobody"]
				if got := outcome(m, attrs, today.Add(time.Minute)); got != want {
					t.Errorf("%s, %s, %s, once it has expired: %s, want %s", tt.name, how, who, got, want)
				}
			}
		}
	}
}

// It holds until the microsecond at which it expires.
func TestOverride_Expires(t *testing.T) {
	m := atRunTime(t, `"action": "block", "match": {"header:x-user": "ann"}`)
	attrs := policy.Map{"header:x-user": "ann"}
	last := today.Add(time.Minute - time.Microsecond)
	if got := outcome(m, attrs, last); got != "blocked by o0" {
		t.Errorf("a microsecond before: %s, want blocked", got)
	}
	if got := outcome(m, attrs, last.Add(time.Microsecond)); strings.Contains(got, "blocked") {
		t.Errorf("at its end: %s", got)
	}
	if !m.DependsOnTime() || plain(t).DependsOnTime() {
		t.Errorf("timed: %t with an override, %t without; want true, false", m.DependsOnTime(), plain(t).DependsOnTime())
	}
}

// The precedence of actions does not depend on their order in the file.
func TestOverride_Precedence(t *testing.T) {
	all := []string{
		`"action": "break_glass"`,
		`"action": "shadow"`,
		`"action": "block", "match": {"header:x-user": "ann"}`,
		`"action": "allow", "match": {"header:x-user": "ann"}`,
		`"action": "limit", "rules": ["user"], "match": {"header:x-user": "ann"}, "algorithm_config": {"rps": 2, "burst": 99}`,
	}
	ann := policy.Map{"header:x-user": "ann"}
	for first, want := range []string{"allowed by", "allowed by", "blocked by", "allowed by", "user:99 slotted:10 all:1000"} {
		for _, backward := range []bool{false, true} {
			list := slices.Clone(all[first:])
			if backward {
				slices.Reverse(list)
			}
			if got := outcome(atRunTime(t, list...), ann, today); !strings.HasPrefix(got, want) {
				t.Errorf("%s: %s, want %s", list, got, want)
			}
		}
	}
	shadowed := []string{all[1], all[2], all[4]}
	if got, want := outcome(atRunTime(t, shadowed...), ann, today), "user:99* slotted:10* all:1000*"; got != want {
		t.Errorf("shadow, block and limit: %s, want %s", got, want)
	}
	two := []string{strings.Replace(all[4], "99", "50", 1), all[4]}
	if got := outcome(atRunTime(t, two...), ann, today); !strings.HasPrefix(got, "user:50") {
		t.Errorf("two limits: %s, want the first", got)
	}
	ofRule := []string{all[4], strings.Replace(all[3], `"match"`, `"rules": ["user"], "match"`, 1)}
	if got := outcome(atRunTime(t, ofRule...), ann, today); got != "slotted:10 all:1000" {
		t.Errorf("limit and allow of one rule: %s, want that it does not count", got)
	}
}

// An override by key works with a tag of slot_by and with hashed secrets.
func TestOverride_Key(t *testing.T) {
	m, err := policy.Load([]byte(`{"rules": [
		{"name": "plain", "limit_keys": ["header:x-user"], "algorithm_config": {"rps": 1, "burst": 10}},
		{"name": "slotted", "group": "slotted", "limit_keys": ["header:x-user"], "slot_by": "header:x-user", "algorithm_config": {"rps": 1, "burst": 10}},
		{"name": "secret", "limit_keys": ["header:authorization"], "limits": [{"name": "a", "rps": 1, "burst": 10}, {"name": "b", "rps": 2, "burst": 20}]},
		{"name": "odd:}/name", "limit_keys": ["header:x-user", "path"], "algorithm_config": {"rps": 1, "burst": 10}},
		{"name": "all", "group": "all", "limit_keys": [], "algorithm_config": {"rps": 1, "burst": 10}}]}`), policy.Options{Now: today, HashKey: []byte("test")})
	if err != nil {
		t.Fatal(err)
	}
	ann := policy.Map{"header:x-user": "a}n:n/", "header:authorization": "Bearer of something secret", "path": "/x"}
	bob := policy.Map{"header:x-user": "bob", "header:authorization": "Bearer of another", "path": "/x"}
	matches, _ := m.Match(nil, ann, 0, 0)
	if len(matches) != 6 {
		t.Fatalf("%d matches, want 6", len(matches))
	}
	for _, match := range matches {
		o := policy.Override{ID: "k", Action: policy.ActionBlock, Key: match.Key, Reason: "r", Author: "a", ExpiresAt: today.Add(time.Minute)}
		with, err := m.WithOverrides([]policy.Override{o}, today)
		if err != nil {
			t.Errorf("key %q: %v", match.Key, err)
			continue
		}
		if got := outcome(with, ann, today); got != "blocked by k" {
			t.Errorf("key %q: %s, want blocked", match.Key, got)
		}
		if got := outcome(with, bob, today); (got == "blocked by k") != (match.Rule.Name == "all") {
			t.Errorf("key %q, another request: %s", match.Key, got)
		}
		o.Action, o.Algorithm, o.Config = policy.ActionLimit, "token_bucket", json.RawMessage(`{"rps": 1, "burst": 77}`)
		if len(match.Rule.Limits) > 1 {
			o.Algorithm, o.Config, o.Limits = "", nil, json.RawMessage(`[{"name": "a", "rps": 1, "burst": 77}, {"name": "b", "rps": 1, "burst": 77}]`)
		}
		with, err = m.WithOverrides([]policy.Override{o}, today)
		if err != nil {
			t.Errorf("a limit for key %q: %v", match.Key, err)
			continue
		}
		changed, _ := with.Match(nil, ann, 0, bucket.At(today))
		if !slices.ContainsFunc(changed, func(c policy.Match) bool {
			return c.Limit.Override != nil && c.Limit.Bucket.Capacity() == 77*bucket.Token
		}) {
			t.Errorf("a limit for key %q: it is in force nowhere", match.Key)
		}
		if !slices.ContainsFunc(changed, func(c policy.Match) bool { return c.Key == match.Key }) {
			t.Errorf("a limit for key %q: its key is another", match.Key)
		}
	}
}

// A bucket with another limit keeps its spent tokens, and never admits more than both limits together.
func TestOverride_KeepsWhatIsMissing(t *testing.T) {
	before, after := plain(t), atRunTime(t, `"action": "limit", "rules": ["user"], "match": {"header:x-user": "ann"}, "algorithm_config": {"rps": 1, "burst": 14}`)
	ann := policy.Map{"header:x-user": "ann"}
	now := bucket.At(today)
	states := map[string]bucket.State{}
	spend := func(m *policy.Matcher) (n int) {
		for {
			matches, _ := m.Match(nil, ann, 0, now)
			i := slices.IndexFunc(matches, func(c policy.Match) bool { return c.Rule.Name == "user" })
			limit := matches[i].Limit.Bucket
			next, snap := limit.Take(states[matches[i].Key], now, matches[i].Cost)
			if !snap.Allowed {
				return n
			}
			states[matches[i].Key] = next
			n++
		}
	}
	if got := spend(before); got != 10 {
		t.Errorf("before: %d of 10", got)
	}
	if got := spend(after); got != 4 {
		t.Errorf("raised by 4: %d more, want 4", got)
	}
	if got := spend(before); got != 0 {
		t.Errorf("lowered again: %d more, want none", got)
	}
	now += 6_000_000 // 4 of them pay for tokens taken beyond the lower limit
	if got := spend(before); got != 2 {
		t.Errorf("6 s later at 1/s: %d, want 2", got)
	}
	if len(states) != 1 {
		t.Errorf("%d buckets, want one", len(states))
	}
}

// The matcher that others are put beside stays as it is.
func TestWithOverrides_IsAnother(t *testing.T) {
	m := inFile(t, `"action": "block", "match": {"header:x-user": "ann"}`)
	first, err := m.WithOverrides(renamed(parsed(t, `"action": "block", "match": {"header:x-user": "bob"}`)), today)
	if err != nil {
		t.Fatal(err)
	}
	second, err := first.WithOverrides(renamed(parsed(t, `"action": "block", "match": {"header:x-user": "cyd"}`)), today)
	if err != nil {
		t.Fatal(err)
	}
	third, err := second.WithOverrides(nil, today)
	if err != nil {
		t.Fatal(err)
	}
	for i, tt := range []struct {
		m    *policy.Matcher
		want string
	}{{m, "ann"}, {first, "ann bob"}, {second, "ann cyd"}, {third, "ann"}} {
		var blocked []string
		for _, user := range []string{"ann", "bob", "cyd"} {
			if strings.HasPrefix(outcome(tt.m, policy.Map{"header:x-user": user}, today), "blocked") {
				blocked = append(blocked, user)
			}
		}
		if got := strings.Join(blocked, " "); got != tt.want || len(tt.m.Overrides()) != len(blocked) {
			t.Errorf("matcher %d blocks %s, and lists %d; want %s", i, got, len(tt.m.Overrides()), tt.want)
		}
	}
}

func renamed(list []policy.Override) []policy.Override {
	for i := range list {
		list[i].ID += "x"
	}
	return list
}

// An override keeps the shards and leases of its rule. A limit that does not support them is an error.
func TestOverride_KeepsShardsAndLeases(t *testing.T) {
	m := load(t, `{"name": "split", "limit_keys": ["path"], "algorithm_config": {"rps": 10, "burst": 100, "shards": 4}}`,
		`{"name": "lent", "limit_keys": ["path"], "group": "g", "algorithm_config": {"rps": 10, "burst": 100, "leased": true}}`)
	with := func(rule, config string) (*policy.Matcher, error) {
		o, err := policy.ParseOverride([]byte(`{"id": "x", "action": "limit", "rules": ["` + rule + `"], "match": {}, ` + config +
			`, "reason": "r", "author": "a", "expires_at": "2100-01-01T00:00:00Z"}`))
		if err != nil {
			t.Fatal(err)
		}
		return m.WithOverrides([]policy.Override{o}, time.Unix(0, 0))
	}
	for rule, bad := range map[string][]string{
		"split": {`"algorithm": "sliding_window", "algorithm_config": {"tokens": 9, "window": "1m"}`, `"algorithm_config": {"rps": 1, "burst": 2}`},
		"lent": {`"algorithm": "sliding_window", "algorithm_config": {"tokens": 9, "window": "1m"}`, `"algorithm": "leaky_bucket", "algorithm_config": {"rps": 9, "queue": 1}`,
			`"algorithm_config": {"rps": 9, "burst": 100, "charge_on": {"status": [401]}}`},
	} {
		for _, config := range bad {
			if _, err := with(rule, config); err == nil {
				t.Errorf("%s: %s is accepted", rule, config)
			}
		}
		next, err := with(rule, `"algorithm_config": {"rps": 20, "burst": 200}`)
		if err != nil {
			t.Errorf("%s: %v", rule, err)
			continue
		}
		before, _ := m.Match(nil, policy.Map{"path": "/"}, 0, 1)
		after, _ := next.Match(nil, policy.Map{"path": "/"}, 0, 1)
		for i := range before {
			b, a := before[i], after[i]
			if a.Key != b.Key || a.Limit.Shards != b.Limit.Shards || a.Limit.Leased != b.Limit.Leased || (a.Limit.Override != nil) != (a.Rule.Name == rule) {
				t.Errorf("%s: %+v became %+v", rule, b.Limit, a.Limit)
			}
		}
	}
}
