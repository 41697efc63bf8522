// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/policy"
)

func TestWarnings(t *testing.T) {
	config := func(s string) string { return `{"name": "r", "limit_keys": [], "algorithm_config": {` + s + `}}` }
	for _, tc := range []struct {
		rule string
		want []string // a part of each
	}{
		{config(`"rps": 10, "burst": 20`), nil},
		{config(`"rps": 0.7654321, "burst": 90000`), []string{`/rules/0: limit "r": the rate is lowered by`}},
		{config(`"rps": 0.3333333333333333, "burst": 20`), []string{"the rate is lowered by", "/algorithm_config/rps: the rate has too many digits"}},
		{config(`"rps": 16.666666666666668, "burst": 20`), []string{"/algorithm_config/rps: the rate has too many digits"}},
		{config(`"rps": 1, "burst": 20, "cost_source": "header:x"`), []string{"header:x can empty a bucket", "header:x can pay as little"}},
		{config(`"rps": 1, "burst": 20, "cost_source": "query:x", "max_cost": 5`), []string{"query:x can pay as little"}},
		{config(`"rps": 1, "burst": 20, "cost_source": "query:x", "max_cost": 5, "min_cost": 1`), nil},
		{config(`"rps": 1, "burst": 20, "cost_source": "query:x", "max_cost": 5, "min_cost": 1, "fixed_cost": 1`), []string{"fixed_cost has no effect"}},
		{config(`"rps": 1, "burst": 20, "cost_source": "attribute:jwt:x"`), nil},
		{config(`"rps": 1, "burst": 20, "max_cost": 2`), []string{"have no effect"}},
		{`{"name": "r", "limit_keys": ["tenant"], @}`, []string{"/rules/0: HTTP requests do not have the attribute tenant: only an embedding program"}},
		{`{"name": "r", "match": {"envoy:domain": "d"}, "limit_keys": ["descriptor:user"], @}`, []string{
			"/rules/0: HTTP requests do not have the attribute envoy:domain: it is for Envoy's rate limit service (grpc_listen)",
			"/rules/0: HTTP requests do not have the attribute descriptor:user: it is for Envoy's rate limit service (grpc_listen)",
		}},
		{`{"name": "r", "limit_keys": ["envoy:context:tier"], @}`, []string{"/rules/0: HTTP requests do not have the attribute envoy:context:tier: it is for Envoy's external authorization"}},
	} {
		m := load(t, tc.rule)
		got := m.Warnings()
		ok := len(got) == len(tc.want)
		for i := range got {
			ok = ok && strings.Contains(got[i].String(), tc.want[i])
		}
		if !ok {
			t.Errorf("%s: warnings %q, want %q", tc.rule, got, tc.want)
		}
		exact := m.Rules()[0].Limits[0].Approximation == nil
		if exact == strings.Contains(fmt.Sprint(got), "the rate is") {
			t.Errorf("%s: exact = %t, warnings %q", tc.rule, exact, got)
		}
	}
}

// A rule that is the whole file has no path to name.
func TestWarnings_OfTheWholeFile(t *testing.T) {
	m, err := policy.Load([]byte(`{"name": "odd", "limit_keys": [], "algorithm_config": {"rps": 0.7654321, "burst": 90000}}`), policy.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if ws := m.Warnings(); len(ws) != 1 || strings.HasPrefix(ws[0].String(), ":") {
		t.Errorf("warnings %q, want one that does not begin with a colon", ws)
	}
}

func TestLoad_MisspeltModeIsOneMistake(t *testing.T) {
	_, err := policy.Load([]byte(`{"rules": [
		{"name": "a", "limit_keys": [], "mode": "shadwo", "algorithm_config": {"rps": 1, "burst": 1}},
		{"name": "b", "limit_keys": [], "algorithm_config": {"rps": 1, "burst": 1}}]}`), policy.Options{})
	var es policy.Errors
	if !errors.As(err, &es) || len(es) != 1 || es[0].Path != "/rules/0/mode" {
		t.Errorf("error %v, want one, at /rules/0/mode", err)
	}
}

// A misspelled word does not hide other errors in its rule. The error of a field in the wrong place names the
// right place.
func TestLoad_EveryMistakeOfARule(t *testing.T) {
	_, err := policy.Load([]byte(`{"name": "r", "limit_keys": [], "algorithm": "tokn", "mode": "x", "cost_source": "header:c",
		"algorithm_config": {"rps": -1, "burst": 0, "brust": 2, "max_reserved": -1}}`), policy.Options{})
	var es policy.Errors
	if !errors.As(err, &es) {
		t.Fatal(err)
	}
	var paths []string
	for _, e := range es {
		paths = append(paths, e.Path)
	}
	want := "/algorithm /mode /cost_source /algorithm_config/rps /algorithm_config/burst /algorithm_config/brust /algorithm_config/max_reserved"
	if got := strings.Join(paths, " "); got != want {
		t.Errorf("mistakes at %s,\nwant at %s", got, want)
	}
	if es[2].Hint != "it belongs in algorithm_config" {
		t.Errorf("hint %q for a misplaced field", es[2].Hint)
	}
}

func TestLoad_MaxReserved(t *testing.T) {
	for text, want := range map[string]bucket.Tokens{"0": 0, "2.5": 2500} {
		m, err := policy.Load([]byte(`{"name": "r", "limit_keys": [], "algorithm_config": {"rps": 1, "burst": 5, "max_reserved": `+text+`}}`), policy.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if got := m.Rules()[0].Limits[0].Bucket.MaxReserved(); got != want {
			t.Errorf("max_reserved %s: %v, want %v", text, got, want)
		}
	}
}
