// SPDX-License-Identifier: Apache-2.0

package rules_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/metehq/mete/pgstore/rules"
	"github.com/metehq/mete/policy"
)

// randomPolicy is a policy of few words, so that rules meet.
func randomPolicy(rng *rand.Rand) []byte {
	pick := func(words ...string) string { return words[rng.IntN(len(words))] }
	attributes := []string{"path", "jwt:plan", "jwt:sub", "header:x-a", "method", "ip:address"}
	values := []any{"/a", "/b", "/a*", "free", "pro", "x", 5, true, "GET", "*"}
	var names int
	rule := func() map[string]any {
		names++
		r := map[string]any{"name": fmt.Sprintf("r%d", names), "limit_keys": []string{}}
		keys := []string{}
		for _, a := range attributes {
			if rng.IntN(5) == 0 {
				keys = append(keys, a)
			}
		}
		rng.Shuffle(len(keys), func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
		r["limit_keys"] = keys
		match := map[string]any{}
		for _, a := range attributes[:5] {
			switch value := values[rng.IntN(len(values))]; rng.IntN(8) {
			case 0, 1:
				match[a] = value
			case 2:
				match[a] = []any{value, values[rng.IntN(len(values))]}
			case 3:
				match[a] = map[string]any{"not": value}
			}
		}
		if len(match) > 0 {
			r["match"] = match
		}
		for field, words := range map[string][]string{
			"group": {"r1", "r2", "r3", "g"}, "mode": {"shadow", "enforce"}, "on_missing": {"skip", "deny", "empty"},
			"on_store_error": {"open", "closed", "local"}, "deadline": {"20ms"}, "slot_by": {"path", "header:x-a"}, "description": {"text"},
		} {
			if rng.IntN(4) == 0 {
				r[field] = pick(words...)
			}
		}
		r["algorithm_config"] = map[string]any{pick("rps", "tokens_per_second"): json.Number(pick("1", "0.5", "1e1")), "burst": json.Number(pick("1", "20.0", "1.5"))}
		switch rng.IntN(6) {
		case 0:
			r["algorithm_config"] = map[string]any{"rate": "7/1m", "burst": "300s"}
		case 1:
			delete(r, "algorithm_config")
			r["limits"] = []any{map[string]any{"rps": 5, "burst": 9}, map[string]any{"algorithm": "fixed_window", "tokens": 9, "window": "1d"}}
		}
		return r
	}
	list := func() (all []any) {
		for range 1 + rng.IntN(6) {
			all = append(all, rule())
		}
		return all
	}
	file := map[string]any{"rules": list()}
	if rng.IntN(3) == 0 {
		file = map[string]any{"policies": []any{
			map[string]any{"id": "a", "spec": map[string]any{"rules": list(), "slot_by": pick("path", "method")}},
			map[string]any{"id": "b", "spec": map[string]any{"rules": list(), "mode": pick("shadow", "enforce")}},
		}}
	}
	text, _ := json.Marshal(file)
	return text
}

func TestRoundTrip_Random(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	sound := 0
	for range 4000 {
		data := randomPolicy(rng)
		m, err := policy.Load(data, options)
		if err != nil {
			continue
		}
		sound++
		values := valuesOf(data)
		set := fromFile(t, data)
		sameDecisions(t, fmt.Sprintf("%s as rows%s", data, rowsText(set)), m, compile(t, set), values)
		file := set.Export()
		sameDecisions(t, fmt.Sprintf("%s exported as %s", data, file), m, load(t, file), values)
		if got, want := rowsText(fromFile(t, file)), rowsText(set); got != want {
			t.Fatalf("the rows of the export are%s\nwant%s\nfile: %s\nexport: %s", got, want, data, file)
		}
		before := rowsText(set)
		if err := set.Import(file, true); err != nil || rowsText(set) != before {
			t.Fatalf("importing the export makes%s\nof%s (%v)", rowsText(set), before, err)
		}
	}
	if sound < 500 {
		t.Errorf("only %d random policies have no mistakes", sound)
	}
}

// No two active rows of an import are what the database takes for copies.
func TestImport_SetsRowsApart(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for range 1000 {
		data := randomPolicy(rng)
		if _, err := policy.Load(data, options); err != nil {
			continue
		}
		seen := map[string]string{}
		for _, r := range fromFile(t, data).Rules {
			var spec map[string]json.RawMessage
			if err := json.Unmarshal(r.Spec, &spec); err != nil {
				t.Fatal(err)
			}
			plain := true
			for _, field := range rules.SetsApart {
				plain = plain && spec[field] == nil
			}
			key := r.KeyPattern + " " + r.Plan
			if other := seen[key]; plain && other != "" {
				t.Fatalf("rules %s and %s have the pattern %q, and nothing sets them apart: %s", other, r.Name, key, data)
			}
			if plain {
				seen[key] = r.Name
			}
		}
	}
}
