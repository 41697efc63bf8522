// SPDX-License-Identifier: Apache-2.0

package diff_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/testseed"
	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/policy/diff"
)

type object = map[string]any

// A maker makes random policies of few attributes and values, so that rules overlap.
type maker struct{ *rand.Rand }

func pick[T any](r *maker, of ...T) T { return of[r.IntN(len(of))] }

func (r *maker) value(attribute string) any {
	switch attribute {
	case "method":
		return pick(r, "GET", "POST")
	case "path":
		return pick(r, "/a", "/b", "/a*", "/*", "/ab*", "/{x}", "/{x...}")
	case "host":
		return pick(r, "a.b", "*.b", "c")
	case "ip:address":
		return pick(r, "192.0.2.0/24", "192.0.2.1", "198.51.100.0/24")
	}
	return pick(r, "x", "y", "*")
}

func (r *maker) match() object {
	m := object{}
	for _, a := range []string{"method", "path", "host", "ip:address", "header:h"} {
		if r.IntN(3) > 0 {
			continue
		}
		m[a] = r.value(a)
		switch r.IntN(4) {
		case 0:
			m[a] = []any{m[a], r.value(a)}
		case 1:
			m[a] = object{"not": m[a]}
		}
	}
	return m
}

func (r *maker) limit() object {
	return object{"rate": pick(r, "1/1s", "5/1m"), "burst": pick(r, 1, 2)}
}

func (r *maker) rule(name string) object {
	rule := object{"name": name, "limit_keys": pick(r, []any{}, []any{"ip:address"}, []any{"header:h"}, []any{"ip:address", "header:h"}), "algorithm_config": r.limit()}
	if m := r.match(); len(m) > 0 {
		rule["match"] = m
		if other := r.match(); len(other) > 0 && r.IntN(4) == 0 {
			rule["match"] = []any{m, other}
		}
	}
	if r.IntN(3) == 0 {
		rule["group"] = pick(r, "g1", "g2")
	}
	if r.IntN(4) == 0 {
		rule["mode"] = pick(r, "shadow", "off", "enforce")
		if len(rule["limit_keys"].([]any)) > 0 {
			rule["mode"] = pick(r, "shadow", "off", "40%", "70%")
		}
	}
	if r.IntN(5) == 0 {
		rule["on_missing"] = pick(r, "empty", "deny")
	}
	return rule
}

func (r *maker) override(id string) object {
	o := object{"id": id, "action": pick(r, "block", "allow"), "match": object{"ip:address": r.value("ip:address")},
		"reason": "r", "author": "a", "expires_at": "2026-06-01T00:00:00Z"}
	return o
}

func (r *maker) policy() object {
	p := object{}
	var rules, overrides []any
	for i := range 1 + r.IntN(6) {
		rules = append(rules, r.rule(fmt.Sprintf("r%d", i)))
	}
	p["rules"] = rules
	if r.IntN(3) == 0 {
		p["fallback_limit"] = object{"limit_keys": pick(r, []any{}, []any{"ip:address"}), "algorithm_config": r.limit()}
	}
	for i := range r.IntN(3) {
		overrides = append(overrides, r.override(fmt.Sprintf("o%d", i)))
	}
	if overrides != nil {
		p["overrides"] = overrides
	}
	return p
}

// edit returns a policy with some edits.
func (r *maker) edit(p object) object {
	p = maps.Clone(p)
	for range r.IntN(3) {
		rules := slices.Clone(p["rules"].([]any))
		i := r.IntN(len(rules))
		switch r.IntN(7) {
		case 0:
			rules = slices.Insert(rules, i, any(r.rule(fmt.Sprintf("n%d", r.IntN(1000)))))
		case 1:
			if len(rules) > 1 {
				rules = slices.Delete(rules, i, i+1)
			}
		case 2, 3:
			j := r.IntN(len(rules))
			rules[i], rules[j] = rules[j], rules[i]
		case 4:
			rules[i] = r.rule(rules[i].(object)["name"].(string))
		case 5:
			rule := maps.Clone(rules[i].(object))
			other := r.rule("")
			field := pick(r, "match", "group", "mode", "algorithm_config", "on_missing")
			if delete(rule, field); other[field] != nil {
				rule[field] = other[field]
			}
			rules[i] = rule
		case 6:
			if delete(p, "overrides"); r.IntN(2) == 0 {
				p["overrides"] = []any{r.override("o0")}
			}
		}
		p["rules"] = rules
	}
	return p
}

func (r *maker) request() policy.Map {
	m := policy.Map{}
	for a, values := range map[string][]string{"method": {"GET", "POST", "PUT"}, "path": {"/a", "/b", "/abc", "/", "/a/b"}, "host": {"a.b", "c.b", "c"}, "ip:address": {"192.0.2.1", "192.0.2.2", "198.51.100.1", "203.0.113.1"}, "header:h": {"x", "y", "z", ""}} {
		if r.IntN(6) > 0 {
			m[a] = values[r.IntN(len(values))]
		}
	}
	return m
}

func compile(p object) *policy.Matcher {
	text, err := json.Marshal(p)
	if err != nil {
		return nil
	}
	m, err := policy.Load(text, policy.Options{HashKey: []byte("test"), Now: now})
	if err != nil {
		return nil // such as rules that can never match
	}
	return m
}

func decide(m *policy.Matcher, request policy.Map) (d diff.Decision) {
	d.Matches, d.Verdict = m.Match(nil, request, 0, bucket.At(now))
	return d
}

// If a request is decided differently, Compare reports a difference. An example has
// the decisions of both policies.
func TestCompare_Random(t *testing.T) {
	r := &maker{rand.New(testseed.PCG(1, 2))}
	pairs, different, silent, shown := 0, 0, 0, 0
	for pairs < 4000 {
		p := r.policy()
		old, new := compile(p), compile(r.edit(p))
		if old == nil || new == nil {
			continue
		}
		pairs++
		found := diff.Compare(old, new, now)
		if len(found) == 0 {
			silent++
		}
		for range 100 {
			request := r.request()
			was, is := decide(old, request), decide(new, request)
			if was.Equal(&is) {
				continue
			}
			different++
			if len(found) == 0 {
				a, _ := json.Marshal(p)
				t.Fatalf("no difference is reported, but %v is decided differently: %s, %s\nold: %s\nnew: %v", request, decision(was), decision(is), a, new.Describe())
			}
			break
		}
		for _, d := range found {
			if d.Example == nil {
				continue
			}
			was, is := decide(old, d.Example.Request), decide(new, d.Example.Request)
			if !was.Equal(&d.Example.Old) || !is.Equal(&d.Example.New) {
				t.Fatalf("the example is decided otherwise: %s", words(d))
			}
			if !was.Equal(&is) {
				shown++
			}
		}
	}
	t.Logf("%d pairs, %d decide a random request differently, %d have no difference, %d examples show a difference", pairs, different, silent, shown)
	if different < pairs/4 || silent < pairs/10 || shown < different {
		t.Error("the random policies test too little")
	}
}
