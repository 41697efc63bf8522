// SPDX-License-Identifier: Apache-2.0

package httpapi_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/api"
	"github.com/metehq/mete/httpapi"
	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/storetest"
)

// explained has a tier, a rule in shadow, one that is off, and one for POST.
const explained = `{"bundle_version": 7, "policies": [{"id": "api", "spec": {"rules": [
	{"name": "enterprise", "limit_keys": ["tenant"], "match": {"jwt:plan": "enterprise"}, "algorithm_config": {"rps": 100, "burst": 100}},
	{"name": "free", "limit_keys": ["tenant"], "algorithm_config": {"rps": 10, "burst": 2}},
	{"name": "trial", "limit_keys": [], "mode": "shadow", "limits": [
		{"algorithm": "token_bucket", "rps": 1, "burst": 1}, {"name": "day", "algorithm": "fixed_window", "tokens": 5, "window": "1d"}]},
	{"name": "old", "limit_keys": ["method"], "mode": "off", "algorithm_config": {"rps": 10, "burst": 2}},
	{"name": "address", "limit_keys": ["ip:address"], "algorithm_config": {"rps": 10, "burst": 2}}]}}]}`

// explaining is an API that explains by a clock that stands still.
func explaining(t *testing.T, rules string) (*httpapi.API, *clock) {
	t.Helper()
	c := newClock()
	lim, err := mete.New(storetest.NewModel(c.read), limiter(t, storetest.NewModel(c.read), rules).Policy(), mete.Config{Now: c.read})
	if err != nil {
		t.Fatal(err)
	}
	h, err := httpapi.New(lim, httpapi.Config{Admin: true})
	if err != nil {
		t.Fatal(err)
	}
	return h, c
}

// indented is a text of JSON that people can compare.
func indented(t *testing.T, text []byte) string {
	t.Helper()
	var b bytes.Buffer
	if err := json.Indent(&b, text, "", " "); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return b.String()
}

func TestExplain(t *testing.T) {
	h, _ := explaining(t, explained)
	const request = `{"attributes": {"tenant": "a", "jwt:plan": "pro"}, "cost": 1.5}`
	for _, want := range []string{
		`{"at":"2023-11-14T22:13:20Z","policy_version":7,"why":"allowed: 0.5 of 2 tokens left by rule free",
			"decision":{"allowed":true,"rule":"free","reason":"","retry_after":0,"degraded":false,
				"limits":[{"rule":"free","limit":"free","remaining":0,"retry_after":0,"full_after":0.15}]},
			"passes_at":"2023-11-14T22:13:20Z","override":null,"shadowed_by":null,"rules":[
			{"name":"enterprise","mode":"enforce","limit_keys":["tenant"],"outcome":"unmatched","why":"jwt:plan is \"pro\", and the rule wants \"enterprise\"",
				"shadow":false,"attribute":"jwt:plan","has":"pro","wants":"\"enterprise\"","limits":[]},
			{"name":"free","mode":"enforce","limit_keys":["tenant"],"outcome":"applies","why":"applies, and allows it","shadow":false,"limits":[
				{"name":"free","key":"free:tenant=a","algorithm":"token_bucket","cost":1.5,"capacity":2,"asked":true,"allowed":true,
				"before":{"remaining":2},"after":{"remaining":0.5},"retry_after":0,"passes_at":"2023-11-14T22:13:20Z","full_after":0.15}]},
			{"name":"trial","mode":"shadow","limit_keys":[],"outcome":"applies","why":"applies in shadow, and would deny it","shadow":true,"limits":[
				{"name":"trial/1","key":"trial/1:","algorithm":"token_bucket","cost":1.5,"capacity":1,"asked":true,"allowed":false,
				"before":{"remaining":1},"after":{"remaining":1},"retry_after":null,"passes_at":null,"full_after":0},
				{"name":"trial/day","key":"trial/day:","algorithm":"fixed_window","cost":1.5,"capacity":5,"asked":true,"allowed":true,
				"before":{"remaining":5},"after":{"remaining":5},"retry_after":0,"passes_at":"2023-11-14T22:13:20Z","full_after":0}]},
			{"name":"old","mode":"off","limit_keys":["method"],"outcome":"off","why":"off","shadow":false,"limits":[]},
			{"name":"address","mode":"enforce","limit_keys":["ip:address"],"outcome":"lacking",
				"why":"the request has no ip:address, which is part of the bucket's key","shadow":false,"attribute":"ip:address","limits":[]}]}`,
		`{"at":"2023-11-14T22:13:20Z","policy_version":7,"why":"denied by rule free: 0.5 of 2 tokens left, and it costs 1.5",
			"decision":{"allowed":false,"rule":"free","reason":"token_bucket_exceeded","retry_after":0.1,"degraded":false,
				"limits":[{"rule":"free","limit":"free","remaining":0,"retry_after":0.1,"full_after":0.15}]},
			"passes_at":"2023-11-14T22:13:20.1Z"`,
	} {
		want := strings.NewReplacer("\n", "", "\t", "").Replace(want)
		w := post(h, "/v1/explain", request)
		got := strings.TrimSuffix(w.Body.String(), "\n")
		if strings.HasSuffix(want, "]}") && got != want {
			t.Errorf("got %d %s\nwant %s", w.Code, indented(t, []byte(got)), indented(t, []byte(want)))
		} else if w.Code != 200 || !strings.HasPrefix(got, want) {
			t.Errorf("got %d %s\nwant at its beginning %s", w.Code, got, want)
		}
		post(h, "/v1/take", request)
	}
}

// The decision in an explanation is, to the letter, what a take is answered.
func TestExplain_SameDecisionAsTake(t *testing.T) {
	const exceptional = `{"rules": [
		{"name": "free", "limit_keys": ["tenant"], "limits": [{"algorithm": "token_bucket", "rps": 10, "burst": 4,
			"staged_actions": [{"threshold": 25, "action": "warn"}, {"threshold": 75, "action": "throttle", "delay": "1.5ms"}]}]}],
		"overrides": [
		{"id": "o", "action": "limit", "key": "free:tenant=b", "algorithm_config": {"rps": 1, "burst": 1}, "reason": "r", "author": "a", "expires_at": "2100-01-01T00:00:00Z"},
		{"id": "p", "action": "block", "key": "free:tenant=c", "reason": "r", "author": "a", "expires_at": "2100-01-01T00:00:00Z"},
		{"id": "q", "action": "allow", "match": {"tenant": "d"}, "reason": "r", "author": "a", "expires_at": "2100-01-01T00:00:00Z"}]}`
	for _, rules := range []string{explained, exceptional} {
		h, clock := explaining(t, rules)
		for _, request := range []string{
			`{"attributes":{}}`, `{"attributes":{"tenant":"a"}}`, `{"attributes":{"tenant":"a"}}`, `{"attributes":{"tenant":"a"}}`, `{"attributes":{"tenant":"a"},"cost":9}`,
			`{"attributes":{"tenant":"a"},"max_wait":"1s"}`, `{"attributes":{"tenant":"b","ip:address":"::1"},"cost":0.25}`, `{"attributes":{"tenant":"c"}}`,
			`{"attributes":{"tenant":"d"}}`,
		} {
			var e struct{ Decision json.RawMessage }
			if err := json.Unmarshal(post(h, "/v1/explain", request).Body.Bytes(), &e); err != nil {
				t.Fatal(err)
			}
			if got, want := string(e.Decision), strings.TrimSpace(post(h, "/v1/take", request).Body.String()); got != want {
				t.Errorf("%s:\n explained %s\n took      %s", request, got, want)
			}
			clock.advance(10 * time.Millisecond)
		}
	}
}

func TestExplain_StoreFails(t *testing.T) {
	for name, want := range map[string]string{
		"open":   `allowed: the store does not answer (error), and the rules fail open (on_store_error: open)`,
		"closed": `denied by rule free: the store does not answer (error), and the rule fails closed (on_store_error: closed)`,
		"local":  `allowed: 1 of 2 tokens left by rule free`,
	} {
		rules := `{"name": "free", "limit_keys": [], "on_store_error": "` + name + `", "algorithm_config": {"rps": 10, "burst": 2}}`
		w := post(apiOver(t, brokenStore{}, rules, httpapi.Config{Admin: true}), "/v1/explain", `{"attributes":{}}`)
		var e api.Explanation
		if err := json.Unmarshal(w.Body.Bytes(), &e); err != nil || w.Code != http.StatusOK {
			t.Fatalf("%d %s: %v", w.Code, w.Body, err)
		}
		if e.Why != want || !e.Decision.Degraded || !strings.Contains(e.Rules[0].Why, "on_store_error: "+name) || e.Rules[0].Limits[0].Asked != (name == "local") {
			t.Errorf("%s: %s", name, indented(t, w.Body.Bytes()))
		}
		if (e.PassesAt == nil) != (name == "closed") {
			t.Errorf("%s: passes at %v", name, e.PassesAt)
		}
	}
}

func TestExplain_IsForAdministrators(t *testing.T) {
	h, _ := newAPI(t, perKey, httpapi.Config{})
	if w := post(h, "/v1/explain", `{"attributes":{}}`); w.Code != http.StatusNotFound || !strings.Contains(w.Body.String(), "admin address") {
		t.Errorf("%d %s, want 404", w.Code, w.Body)
	}
}

func TestExplain_Refused(t *testing.T) {
	h, _ := newAPI(t, perKey, httpapi.Config{Admin: true})
	for body, want := range map[string]string{
		`{"requests":[{"attributes":{}}]}`: `"pointer":"/requests"`,
		`{}`:                               `"attributes\" is missing`,
		`{"attributes":{"hots":"a"}}`:      `did you mean`,
	} {
		if w := post(h, "/v1/explain", body); w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), want) {
			t.Errorf("%s: %d %s, want 400 and %s", body, w.Code, w.Body, want)
		}
	}
}

// The explanation names the author and the reason of an override.
func TestExplain_Overrides(t *testing.T) {
	const who = `"reason": "abuse", "author": "ann", "expires_at": "2100-01-01T00:00:00Z"`
	const said = "override o by ann until 2100-01-01T00:00:00Z (abuse)"
	rule := `{"name": "free", "limit_keys": ["tenant"], "mode": "50%", "on_missing": "deny", "algorithm_config": {"rps": 10, "burst": 2}}`
	for _, tt := range []struct{ override, attributes, why, ruleWhy string }{
		{`"action": "block", "match": {"tenant": "a"}`, `{"tenant":"a"}`, "denied: " + said, ""},
		{`"action": "block", "key": "free:tenant=a"`, `{"tenant":"a"}`, "denied: " + said, "is blocked: " + said},
		{`"action": "allow", "match": {"tenant": "a"}`, `{"tenant":"a"}`, "allowed: " + said, ""},
		{`"action": "allow", "rules": ["free"], "match": {"tenant": "a"}`, `{"tenant":"a"}`, "allowed: no limit applies", "passes this rule: " + said},
		{`"action": "limit", "rules": ["free"], "match": {"tenant": "d"}, "algorithm_config": {"rps": 1, "burst": 1}`, `{"tenant":"d"}`,
			"allowed: 0 of 1 tokens left by rule free", "applies, and allows it; it has another limit: " + said + "; it is enforced for 50% of the keys, including this one"},
		{`"action": "shadow"`, `{"tenant":"a"}`, "allowed: all matching rules are in shadow mode", "applies in shadow, and would allow it; all rules are in shadow mode: " + said},
		{`"action": "shadow"`, `{}`, "allowed: no limit applies", "the request has no tenant, and would be denied for it, but the rule is in shadow mode; all rules are in shadow mode: " + said},
		{`"action": "break_glass"`, `{"tenant":"a"}`, "allowed: " + said, ""},
		{`"action": "allow", "match": {"tenant": "z"}`, `{"tenant":"a"}`, "allowed: all matching rules are in shadow mode",
			"applies in shadow, and would allow it; it is enforced for 50% of the keys, but not for this one"},
	} {
		text := `{"rules": [` + rule + `], "overrides": [{"id": "o", ` + tt.override + `, ` + who + `}]}`
		h, _ := explaining(t, text)
		var e api.Explanation
		w := post(h, "/v1/explain", `{"attributes":`+tt.attributes+`}`)
		if err := json.Unmarshal(w.Body.Bytes(), &e); err != nil {
			t.Fatalf("%s: %v", w.Body, err)
		}
		ruleWhy := ""
		if len(e.Rules) > 0 {
			ruleWhy = e.Rules[0].Why
		}
		if e.Why != tt.why || ruleWhy != tt.ruleWhy {
			t.Errorf("%s, %s:\n got %q, %q\nwant %q, %q", tt.override, tt.attributes, e.Why, ruleWhy, tt.why, tt.ruleWhy)
		}
	}
}

func TestExplain_OneMicrosecond(t *testing.T) {
	c := newClock()
	lim := limiter(t, storetest.NewModel(c.read), `{"name": "slow", "limit_keys": [], "algorithm_config": {"rate": "7/1m", "burst": 1}}`)
	m, err := mete.New(lim.Store(), lim.Policy(), mete.Config{Now: c.read})
	if err != nil {
		t.Fatal(err)
	}
	m.Take(t.Context(), mete.Request{})
	e, err := m.Explain(t.Context(), mete.Request{})
	if err != nil {
		t.Fatal(err)
	}
	x := httpapi.ExplanationOf(&e)
	if got := x.PassesAt.Format(time.RFC3339Nano); got != "2023-11-14T22:13:28.571429Z" {
		t.Errorf("passes at %s", got)
	}
	if x.Rules[0].Outcome != policy.OutcomeApplies.String() {
		t.Errorf("outcome %s", x.Rules[0].Outcome)
	}
}
