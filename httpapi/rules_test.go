// SPDX-License-Identifier: Apache-2.0

package httpapi_test

import (
	"encoding/json"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"github.com/metehq/mete"
	"github.com/metehq/mete/memstore"
)

const shownPolicy = `{
	"bundle_version": 3, "expires_at": "2126-01-01T00:00:00Z",
	"policies": [
		{"id": "pages", "spec": {"selector": {"hosts": "example.com", "methods": ["GET", "HEAD"]}, "rules": [
			{"name": "paid", "description": "who pays", "limit_keys": ["header:x-api-key"], "match": {"jwt:plan": ["team", "pro"]}, "algorithm_config": {"rps": 100, "burst": 200}},
			{"name": "free", "limit_keys": ["header:x-api-key"], "mode": "25%", "on_store_error": "closed", "deadline": "20ms", "headers": ["x", "legacy"], "jitter": "10%",
				"algorithm_config": {"rps": 10, "burst": 20}},
			{"name": "guest", "group": "guests", "limit_keys": ["ip:address"], "match": {"header:x-api-key": "guest-secret"}, "on_missing": "deny",
				"limits": [{"name": "minute", "algorithm": "leaky_bucket", "rate": "1/1s", "queue": 5},
					{"name": "day", "algorithm": "cost_based", "budget": 100, "period": "1d", "cost_key": "header:x-cost", "default_cost": 2, "min_cost": 1, "max_cost": 10,
						"staged_actions": [{"threshold": 80, "action": "warn"}, {"threshold": 95, "action": "throttle", "delay": "500ms"}]}]}
		]}},
		{"id": "api", "spec": {
			"rules": [{"name": "paths", "limit_keys": ["path"], "algorithm_config": {"rps": 10, "burst": 20, "shards": 2}}],
			"fallback_limit": {"limit_keys": [], "algorithm_config": {"rate": "7/1m", "burst": 2, "fixed_cost": 0.5}}}}
	],
	"overrides": [
		{"id": "acme", "action": "limit", "rules": ["free"], "match": {"header:x-api-key": "acme-secret"}, "algorithm_config": {"rps": 20, "burst": 40},
			"reason": "launch", "author": "sales", "expires_at": "2126-01-01T00:00:00Z"},
		{"id": "bad", "action": "block", "key": "paths:path=/secret", "reason": "loops", "author": "night", "expires_at": "2126-01-01T00:00:00Z"},
		{"id": "gone", "action": "block", "match": {"path": "/x", "jwt:sub": "someone"}, "reason": "gone", "author": "night", "expires_at": "2126-01-01T00:00:00Z"}
	]
}`

// tree is the answer of v1/rules, as a page reads it.
func tree(t *testing.T, h http.Handler, token, query string) map[string]any {
	t.Helper()
	w := askAs(h, token, "GET", "/v1/rules"+query, "")
	if w.Code != http.StatusOK {
		t.Fatalf("v1/rules%s: %d %s", query, w.Code, w.Body)
	}
	var v map[string]any
	if err := json.Unmarshal(w.Body.Bytes(), &v); err != nil {
		t.Fatal(err)
	}
	return v
}

// at walks into JSON: names of members, and numbers of elements.
func at(t *testing.T, v any, path ...any) any {
	t.Helper()
	for _, step := range path {
		switch step := step.(type) {
		case string:
			v = v.(map[string]any)[step]
		case int:
			list := v.([]any)
			if step >= len(list) {
				t.Fatalf("%v: only %d are there", path, len(list))
			}
			v = list[step]
		}
	}
	return v
}

// text writes JSON in one line.
func text(v any) string {
	s, _ := json.Marshal(v)
	return string(s)
}

func TestRules(t *testing.T) {
	h := newLive(t, liveConfig{Limiter: newLimiter(t, shownPolicy)})
	v := tree(t, h, "op", "")
	first := []any{"policies", 0, "groups"}
	in := func(more ...any) []any { return append(append([]any{}, first...), more...) }
	for _, tt := range []struct {
		name string
		path []any
		want string
	}{
		{"version", []any{"version"}, `3`},
		{"end", []any{"expires"}, `"2126-01-01T00:00:00Z"`},
		{"rules", []any{"rules"}, `5`},
		{"attributes", []any{"attributes", 2}, `{"name":"jwt:plan","secret":false}`},
		{"a secret one", []any{"attributes", 3}, `{"name":"header:x-api-key","secret":true}`},
		{"id", []any{"policies", 0, "id"}, `"pages"`},
		{"selector", []any{"policies", 0, "selector"}, `[{"attribute":"method","wants":"\"GET\" or \"HEAD\""},{"attribute":"host","wants":"\"example.com\""}]`},
		{"a tier", in(0, "rules", 0, "name"), `"paid"`},
		{"the next tier", in(0, "rules", 1, "name"), `"free"`},
		{"description", in(0, "rules", 0, "description"), `"who pays"`},
		{"match", in(0, "rules", 0, "match"), `[[{"attribute":"jwt:plan","wants":"\"team\" or \"pro\""}]]`},
		{"limit keys", in(0, "rules", 0, "limit_keys"), `["header:x-api-key"]`},
		{"place", in(0, "rules", 1, "place"), `2`},
		{"mode", in(0, "rules", 1, "mode"), `"25%"`},
		{"on_store_error", in(0, "rules", 1, "on_store_error"), `"closed"`},
		{"deadline", in(0, "rules", 1, "deadline"), `0.02`},
		{"headers", in(0, "rules", 1, "headers"), `"legacy, x"`},
		{"jitter", in(0, "rules", 1, "jitter"), `"10%"`},
		{"overrides", in(0, "rules", 1, "overrides", 0, "about"), `"header:x-api-key \"acme-secret\""`},
		{"group", in(1, "name"), `"guests"`},
		{"on_missing", in(1, "rules", 0, "on_missing"), `"deny"`},
		{"on_missing in words", in(1, "rules", 0, "facts", 0), `{"field":"on_missing","label":"If the key is missing","notable":true,"value":"the request is denied"}`},
		{"the store in words", in(0, "rules", 1, "facts", 1), `{"field":"on_store_error","label":"Without the store","notable":true,"value":"denied, after 20ms"}`},
		{"a default in words", in(1, "rules", 0, "facts", 1), `{"field":"on_store_error","label":"Without the store","notable":false,"value":"let through, after 50ms"}`},
		{"jitter in words", in(0, "rules", 1, "facts", 3), `{"field":"jitter","label":"Jitter","notable":true,"value":"10%"}`},
		{"a number of a limit in words", in(0, "rules", 0, "limits", 0, "facts", 2), `{"field":"","label":"Full after","notable":false,"value":"2s"}`},
		{"a variable cost in words", in(1, "rules", 0, "limits", 1, "facts", 4), `{"field":"cost_source","label":"Cost","notable":true,"value":"header:x-cost: at least 1, at most 10; otherwise 2"}`},
		{"stages in words", in(1, "rules", 0, "limits", 1, "facts", 3), `{"field":"staged_actions","label":"Stages","notable":true,"value":"from 80% used: warned; from 95% used: each request waits 500ms"}`},
		{"an example", in(1, "rules", 0, "example"), `{"header:x-api-key":"guest-secret","host":"example.com","ip:address":"192.0.2.1","method":"GET"}`},
		{"words", in(0, "rules", 0, "limits", 0, "words"), `"token bucket: up to 200 at once, then 100/s; full in 2s"`},
		{"rate", in(0, "rules", 0, "limits", 0, "rate"), `"100/s"`},
		{"capacity", in(0, "rules", 0, "limits", 0, "capacity"), `200`},
		{"full after", in(0, "rules", 0, "limits", 0, "full_after"), `2`},
		{"a fixed cost", in(0, "rules", 0, "limits", 0, "cost"), `{"default":1,"max":null,"min":null,"source":""}`},
		{"a queue", in(1, "rules", 0, "limits", 0, "queue"), `5`},
		{"a variable cost", in(1, "rules", 0, "limits", 1, "cost"), `{"default":2,"max":10,"min":1,"source":"header:x-cost"}`},
		{"stages", in(1, "rules", 0, "limits", 1, "stages"), `[{"at":"80%","delay":0},{"at":"95%","delay":0.5}]`},
		{"algorithm", in(1, "rules", 0, "limits", 1, "algorithm"), `"cost_based"`},
		{"shards", []any{"policies", 1, "groups", 0, "rules", 0, "limits", 0, "shards"}, `2`},
		{"the fallback", []any{"policies", 1, "groups", 1, "rules", 0, "name"}, `"api/fallback"`},
		{"that it is one", []any{"policies", 1, "groups", 1, "rules", 0, "fallback"}, `true`},
		{"the whole policy's overrides", []any{"overrides", 0, "about"}, `"jwt:sub \"someone\", path \"/x\""`},
		{"an override by key", []any{"policies", 1, "groups", 0, "rules", 0, "overrides", 0, "about"}, `"paths:path=/secret"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := text(at(t, v, tt.path...)); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
	warned := text(at(t, v, "warnings"))
	for _, want := range []string{`"code":"path-key"`, `"rule":"paths"`, `"code":"long-override"`} {
		if !strings.Contains(warned, want) {
			t.Errorf("warnings lack %s: %s", want, warned)
		}
	}
}

// MaxReserved is present if the policy bounds it.
func TestRules_MaxReserved(t *testing.T) {
	const numbers = `"rate": "7/90s", "burst": 20`
	for config, want := range map[string]string{
		`{` + numbers + `}`:                                                       "null",
		`{` + numbers + `, "max_reserved": 0}`:                                    "0",
		`{` + numbers + `, "max_reserved": 2.5}`:                                  "2.5",
		`{"refill": "interval", "rate": "5/10s", "burst": 5}`:                     "null",
		`{"refill": "interval", "rate": "5/10s", "burst": 5, "max_reserved": 12}`: "12",
		`{"rate": "5/10s", "burst": 5, "shards": 2, "max_reserved": 40}`:          "40",
	} {
		h := newLive(t, liveConfig{Limiter: newLimiter(t, `{"rules": [{"name": "a", "limit_keys": ["path"], "algorithm_config": `+config+`}]}`)})
		limit := at(t, tree(t, h, "r", ""), "policies", 0, "groups", 0, "rules", 0, "limits", 0)
		if got := text(at(t, limit, "max_reserved")); got != want {
			t.Errorf("%s: max_reserved is %s, want %s", config, got, want)
		}
		if got := text(at(t, limit, "queue")); got != "0" {
			t.Errorf("%s: a queue of %s", config, got)
		}
	}
}

// For the role read, values that could be secret are hidden.
func TestRules_Masked(t *testing.T) {
	h := newLive(t, liveConfig{Limiter: newLimiter(t, shownPolicy)})
	all := text(tree(t, h, "r", ""))
	for _, secret := range []string{"guest-secret", "acme-secret", "paths:path=/secret", "someone"} {
		if strings.Contains(all, secret) {
			t.Errorf("a reader sees %s", secret)
		}
	}
	for _, want := range []string{"a value that your role does not show", "paths:…", `jwt:sub …, path \"/x\"`, `"example":null`} {
		if !strings.Contains(all, want) {
			t.Errorf("a reader does not see %s in %s", want, all)
		}
	}
	if w := askAs(h, "", "GET", "/v1/rules", ""); w.Code != http.StatusUnauthorized {
		t.Errorf("without a token: %d", w.Code)
	}
}

// The tag of a key identifies its client, so it is masked too.
func TestRules_MasksTags(t *testing.T) {
	h := newLive(t, liveConfig{Limiter: newLimiter(t, `{"rules": [{"name": "free", "limit_keys": ["header:x-user"], "slot_by": "header:x-user", "algorithm_config": {"rps": 1, "burst": 1}}],
		"overrides": [{"id": "a", "action": "block", "key": "{somebody}free:x-user=somebody", "reason": "r", "author": "kim", "expires_at": "2099-01-01T00:00:00Z"}]}`)})
	if all := text(tree(t, h, "r", "")); strings.Contains(all, "somebody") || !strings.Contains(all, "free:…") {
		t.Errorf("a reader sees %s", all)
	}
	if all := text(tree(t, h, "op", "")); !strings.Contains(all, "{somebody}free:x-user=somebody") {
		t.Errorf("an operator sees %s", all)
	}
}

func TestRules_One(t *testing.T) {
	h := newLive(t, liveConfig{Limiter: newLimiter(t, shownPolicy)})
	v := tree(t, h, "op", "?rule=paths")
	if got := text(at(t, v, "policies", 0, "groups", 0, "rules")); !strings.Contains(got, `"name":"paths"`) || strings.Contains(got, `"name":"free"`) {
		t.Errorf("rule paths: %s", got)
	}
	if at(t, v, "policies", 0, "id") != "api" || at(t, v, "rules") != 5.0 {
		t.Errorf("of %v, %v rules", at(t, v, "policies", 0, "id"), at(t, v, "rules"))
	}
	if w := askAs(h, "op", "GET", "/v1/rules?rule=none", ""); w.Code != http.StatusNotFound {
		t.Errorf("a rule that is not there: %d %s", w.Code, w.Body)
	}
}

func TestRules_NoPolicy(t *testing.T) {
	store, err := memstore.New(memstore.Config{})
	if err != nil {
		t.Fatal(err)
	}
	lim, err := mete.New(store, nil, mete.Config{})
	if err != nil {
		t.Fatal(err)
	}
	h := newLive(t, liveConfig{Limiter: lim})
	v := tree(t, h, "r", "")
	if !reflect.DeepEqual(at(t, v, "policies"), []any{}) || at(t, v, "rules") != 0.0 {
		t.Errorf("without a policy: %v", v)
	}
	w := askAs(h, "r", "POST", "/v1/request", `{"text": "GET /x header:a=b"}`, "Content-Type", "application/json")
	if want := `{"attributes":{"method":"GET","path":"/x"},"secrets":[],"unread":["header:a"],"notes":[]}` + "\n"; w.Body.String() != want {
		t.Errorf("a request without a policy: %s, want %s", w.Body, want)
	}
}

// A warning names its rule, whatever form the file has.
func TestRules_WarningsNameTheirRule(t *testing.T) {
	const rule = `{"name": "a", "limit_keys": ["path"], "algorithm_config": {"rate": "1/1s", "burst": 1}}`
	for name, file := range map[string]string{
		"one rule":          rule,
		"rules":             `{"rules": [` + rule + `]}`,
		"a spec":            `{"id": "p", "spec": {"rules": [` + rule + `]}}`,
		"a bundle":          `{"policies": [{"id": "p", "spec": {"rules": [` + rule + `]}}]}`,
		"a fallback's path": `{"rules": [{"name": "b", "limit_keys": [], "algorithm_config": {"rate": "1/1s", "burst": 1}}], "fallback_limit": ` + rule + `}`,
	} {
		h := newLive(t, liveConfig{Limiter: newLimiter(t, file)})
		warned, ok := tree(t, h, "r", "")["warnings"].([]any)
		if !ok || len(warned) == 0 {
			t.Errorf("%s: no warning", name)
		}
		for _, w := range warned {
			if got := w.(map[string]any)["rule"]; got != "a" && got != "b" {
				t.Errorf("%s: the rule of %v is %q", name, w, got)
			}
		}
	}
}
