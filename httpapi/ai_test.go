// SPDX-License-Identifier: Apache-2.0

package httpapi_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/metehq/mete"
	"github.com/metehq/mete/ai"
	"github.com/metehq/mete/aiusage"
	"github.com/metehq/mete/api"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/httpapi"
	"github.com/metehq/mete/memstore"
	"github.com/metehq/mete/policy"
)

const aiRules = `{
	"prices": {"version": "2026-11-01", "unit": "US cent", "models": {"m": {"input": 500000, "output": 1000000}}},
	"rules": [
		{"name": "chat", "limit_keys": ["jwt:sub"], "on_missing": "empty", "rate": "1000000/1d", "cost_source": "ai:tokens"},
		{"name": "money", "group": "money", "limit_keys": ["jwt:sub"], "on_missing": "empty", "rate": "1000000/1d", "cost_source": "ai:money"}],
	"loop_detection": {"enabled": true, "window_seconds": 60, "threshold_identical_requests": 2},
	"circuit_breaker": {"enabled": true, "spend_rate_threshold_per_minute": 5000}}`

// newAI returns an API that counts language models, and its limiter.
func newAI(t *testing.T) (h http.Handler, counts *aiusage.Counts, lim *mete.Limiter) {
	t.Helper()
	store, err := memstore.New(memstore.Config{})
	if err != nil {
		t.Fatal(err)
	}
	m, err := policy.Load([]byte(aiRules), policy.Options{})
	if err != nil {
		t.Fatal(err)
	}
	ratios, err := ai.NewRatios(1000)
	if err != nil {
		t.Fatal(err)
	}
	counts = aiusage.New(ratios)
	counts.SetPolicy(m)
	if lim, err = mete.New(store, m, mete.Config{OnDenial: counts.OnDenial, OnSettlement: counts.OnSettlement}); err != nil {
		t.Fatal(err)
	}
	return newLive(t, liveConfig{Live: httpapi.Live{AI: counts}, Limiter: lim}), counts, lim
}

func aiOf(t *testing.T, h http.Handler, token string) (answer api.AI, body string) {
	t.Helper()
	w := askAs(h, token, "GET", "/v1/ai", "")
	if err := json.Unmarshal(w.Body.Bytes(), &answer); w.Code != http.StatusOK || err != nil {
		t.Fatalf("%d %s %v", w.Code, w.Body, err)
	}
	return answer, w.Body.String()
}

func takeAI(t *testing.T, lim *mete.Limiter, user, loop, prompt string) {
	t.Helper()
	if _, err := lim.Take(t.Context(), mete.Request{Attributes: mete.Attrs{
		"jwt:sub": user, "ai:model": "m", "ai:prompt_tokens": prompt, "ai:max_tokens": "1", "ai:fingerprint": loop,
	}}); err != nil {
		t.Fatal(err)
	}
}

func TestAI_ModelsAndKeys(t *testing.T) {
	h, counts, lim := newAI(t)
	usage := policy.TokenUsage{Input: 3, Cached: 1, Output: 2}
	counts.OnModelCall(t.Context(), &policy.ModelCall{Model: "m", Reported: true, Usage: &usage})
	for i, key := range []string{"chat:sub=alice@example.org", "money:sub=alice@example.org"} {
		r := lim.Policy().Rules()[i]
		counts.OnSettlement(t.Context(), &policy.Settlement{Rule: r, Limit: &r.Limits[0], Key: key, Reserved: 50 * bucket.Token, Charged: 6 * bucket.Token})
	}
	got, _ := aiOf(t, h, "op")
	if len(got.Models) != 1 || got.Models[0] != (api.AIModel{Model: "m", Reported: 1, Input: 3, Cached: 1, Output: 2, Money: 4 * 1000}) {
		t.Errorf("models %+v", got.Models)
	}
	if len(got.Rules) != 1 || got.Rules[0] != (api.AIRule{Rule: "chat", Reserved: 50_000, Charged: 6_000}) {
		t.Errorf("rules %+v", got.Rules)
	}
	if want := (api.AIPolicy{Tokens: true, Money: true, LoopDetection: true, CircuitBreaker: true, PriceUnit: "US cent", PriceVersion: "2026-11-01"}); got.Policy != want {
		t.Errorf("policy %+v", got.Policy)
	}
	if len(got.TokenKeys) != 1 || got.TokenKeys[0].Key != "chat:sub=alice@example.org" || got.TokenKeys[0].Spent != 6_000 || len(got.MoneyKeys) != 1 || got.Masked {
		t.Errorf("keys %+v, %+v", got.TokenKeys, got.MoneyKeys)
	}

	masked, body := aiOf(t, h, "r")
	if strings.Contains(body, "alice") || !masked.Masked || masked.TokenKeys[0].Mask == "" {
		t.Errorf("the role read sees %s", body)
	}
	if w := askAs(h, "r", "GET", "/v1/bucket?key="+url.QueryEscape(masked.TokenKeys[0].Key), ""); w.Code != http.StatusOK {
		t.Errorf("the bucket of a masked key: %d %s", w.Code, w.Body)
	}
	if w := askAs(h, "r", "GET", "/v1/me", ""); !strings.Contains(w.Body.String(), `"ai":true`) {
		t.Errorf("features: %s", w.Body)
	}
}

// A breaker is listed until a reset, by this API or by another server.
func TestAI_BreakersAndLoops(t *testing.T) {
	h, _, lim := newAI(t)
	for range 3 {
		takeAI(t, lim, "a", "same", "1")
	}
	for _, user := range []string{"b", "c"} {
		takeAI(t, lim, user, "first "+user, "3000")
		takeAI(t, lim, user, "second "+user, "3000")
	}
	got, _ := aiOf(t, h, "op")
	if len(got.Loops) != 1 || got.Loops[0].Denials != 2 || got.Loops[0].RetryAfter <= 0 {
		t.Errorf("loops %+v", got.Loops)
	}
	if len(got.Breakers) != 2 || got.Breakers[0].Limit != "circuit_breaker" || got.Breakers[0].RetryAfter != api.Seconds(bucket.Never) {
		t.Fatalf("breakers %+v", got.Breakers)
	}
	body, _ := json.Marshal(map[string]string{"key": got.Breakers[0].Key, "reason": "repaired"})
	if w := askAs(h, "op", "POST", "/v1/bucket/reset", string(body)); w.Code != http.StatusOK {
		t.Fatalf("reset: %d %s", w.Code, w.Body)
	}
	if _, err := lim.ResetBucket(t.Context(), got.Breakers[1].Key); err != nil { // as by another server
		t.Fatal(err)
	}
	if got, _ = aiOf(t, h, "op"); len(got.Breakers) != 0 {
		t.Errorf("breakers %+v after a reset", got.Breakers)
	}
}
