// SPDX-License-Identifier: Apache-2.0

package rules_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/metehq/mete/internal/testseed"
	"github.com/metehq/mete/policytest"
)

// A generator generates policies with a small vocabulary, so that rules overlap.
type generator struct {
	*rand.Rand
	rules int // generated so far
}

func (g *generator) pick(words ...string) string { return words[g.IntN(len(words))] }

var (
	someAttributes = []string{"path", "jwt:plan", "jwt:sub", "header:x-a", "method", "ip:address", "host"}
	someValues     = []any{"/a", "/b", "/a/*", "/a*", "free", "pro", "x", 5, true, "GET", "*", "/a/b"}
)

// inOrder iterates over a map by its sorted keys, so that a seed always generates the same policies.
func inOrder[V any](m map[string]V) iter.Seq2[string, V] {
	return func(yield func(string, V) bool) {
		for _, key := range slices.Sorted(maps.Keys(m)) {
			if !yield(key, m[key]) {
				return
			}
		}
	}
}

// anyRule returns a rule; a fallback has fewer fields.
func (g *generator) anyRule(fallback bool) map[string]any {
	g.rules++
	r := map[string]any{"name": fmt.Sprintf("r%d", g.rules)}
	keys := []string{}
	for _, a := range someAttributes {
		if g.IntN(6) == 0 {
			keys = append(keys, a)
		}
	}
	g.Shuffle(len(keys), func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
	r["limit_keys"] = keys
	for field, words := range inOrder(map[string][]string{
		"mode": {"shadow", "enforce", "off", "25%", "99.50%", "0%", "100%"}, "on_missing": {"skip", "deny", "empty"},
		"on_store_error": {"open", "closed", "local"}, "deadline": {"20ms"}, "slot_by": {"path", "header:x-a"}, "description": {"text"},
		"on_full": {"share", "open", "closed"}, "headers": {"x", "legacy", "none"}, "jitter": {"10%", "50%"},
	}) {
		if g.IntN(4) == 0 {
			r[field] = g.pick(words...)
		}
	}
	g.limit(r)
	if fallback {
		if g.IntN(3) == 0 {
			delete(r, "name")
		}
		if g.IntN(3) == 0 {
			delete(r, "limit_keys")
		}
		return r
	}
	if match := g.match(); len(match) > 0 {
		r["match"] = match
	}
	if g.IntN(4) == 0 {
		r["group"] = g.pick("r1", "r2", "r3", "g")
	}
	return r
}

func (g *generator) match() map[string]any {
	match := map[string]any{}
	for _, a := range someAttributes {
		if a == "ip:address" {
			continue
		}
		switch value := someValues[g.IntN(len(someValues))]; g.IntN(8) {
		case 0, 1:
			match[a] = value
		case 2:
			match[a] = []any{value, someValues[g.IntN(len(someValues))]}
		case 3:
			match[a] = map[string]any{"not": value}
		}
	}
	return match
}

// limit adds limits to a rule.
func (g *generator) limit(r map[string]any) {
	config := map[string]any{g.pick("rps", "tokens_per_second"): json.Number(g.pick("1", "0.5", "1e1")), "burst": json.Number(g.pick("1", "20.0", "1.5"))}
	r["algorithm_config"] = config
	switch g.IntN(9) {
	case 0:
		r["algorithm_config"] = map[string]any{"rate": "7/1m", "burst": "300s"}
	case 1:
		delete(r, "algorithm_config")
		r["limits"] = []any{map[string]any{"rps": 5, "burst": 9}, map[string]any{"algorithm": "fixed_window", "tokens": 9, "window": "1d"}}
	case 2:
		r["algorithm"], r["algorithm_config"] = "cost_based", map[string]any{"budget": 1000, "period": "1d"}
	case 3:
		config["staged_actions"] = []any{map[string]any{"threshold": json.Number("50.0"), "action": "warn"},
			map[string]any{"threshold": 80, "action": "throttle", "delay": "200ms"}, map[string]any{"threshold": 100, "action": "reject"}}
	}
}

// anyPolicy returns a single policy.
func (g *generator) anyPolicy() map[string]any {
	p := map[string]any{}
	var rules []any
	for range 1 + g.IntN(5) {
		rules = append(rules, g.anyRule(false))
	}
	p["rules"] = rules
	for field, words := range inOrder(map[string][]string{
		"mode": {"shadow", "enforce", "off", "25%", "99.5%"}, "slot_by": {"path", "method"}, "headers": {"draft-11", "x"}, "jitter": {"0", "20%"},
	}) {
		if g.IntN(6) == 0 {
			p[field] = g.pick(words...)
		}
	}
	selector := map[string]any{}
	for field, values := range inOrder(map[string][]any{
		"pathExact": {"/a", []string{"/a", "/a/b"}}, "pathPrefix": {"/a", "/a/", "/", []string{"/b", "/a/b"}},
		"methods": {[]string{"get", "POST"}, "G*"}, "hosts": {"x", []string{"X", "free"}},
	}) {
		if g.IntN(8) == 0 {
			selector[field] = values[g.IntN(len(values))]
		}
	}
	if len(selector) > 0 {
		p["selector"] = selector
	}
	if g.IntN(4) == 0 {
		p["fallback_limit"] = g.anyRule(true)
		if g.IntN(5) == 0 {
			delete(p, "rules")
		}
	}
	return p
}

// randomPolicy returns a policy file.
func randomPolicy(rng *rand.Rand) []byte {
	g := &generator{Rand: rng}
	file := g.anyPolicy()
	if rng.IntN(3) == 0 {
		var policies []any
		for _, id := range []string{"a", "rules", "b"}[:1+rng.IntN(3)] {
			policies = append(policies, map[string]any{"id": id, "spec": g.anyPolicy()})
		}
		file = map[string]any{"policies": policies}
		for field, words := range inOrder(map[string][]string{"slot_by": {"header:x-a"}, "headers": {"none"}, "jitter": {"100%"}}) {
			if rng.IntN(6) == 0 {
				file[field] = g.pick(words...)
			}
		}
	}
	text, _ := json.Marshal(file)
	return text
}

func TestRoundTrip_Random(t *testing.T) {
	t.Parallel()
	policies := 4000
	if testing.Short() {
		policies /= 4
	}
	rng := rand.New(testseed.PCG(3, 4))
	sound, fallbacks, selectors := 0, 0, 0
	for range policies {
		data := randomPolicy(rng)
		m, err := policytest.Load(data, options)
		if err != nil {
			continue
		}
		sound++
		if bytes.Contains(data, []byte("fallback_limit")) {
			fallbacks++
		}
		if bytes.Contains(data, []byte("selector")) {
			selectors++
		}
		values := valuesOf(data)
		set := fromFile(t, data)
		sameDecisions(t, fmt.Sprintf("%s as rows%s", data, rowsText(set)), m, compile(t, set), values)
		file := set.Export()
		sameDecisions(t, fmt.Sprintf("%s exported as %s", data, file), m, load(t, file), values)
		sameDecisions(t, fmt.Sprintf("%s exported as %s, as rows", data, file), m, compile(t, fromFile(t, file)), values)
		before := rowsText(set)
		if err := set.Import(file, true); err != nil || rowsText(set) != before {
			t.Fatalf("importing the export %s makes%s\nof%s (%v)", file, rowsText(set), before, err)
		}
	}
	if sound < policies/8 || fallbacks < policies/27 || selectors < policies/27 {
		t.Errorf("%d random policies have no mistakes, %d of them a fallback, %d a selector", sound, fallbacks, selectors)
	}
}
