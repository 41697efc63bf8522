// SPDX-License-Identifier: Apache-2.0

package aiusage_test

import (
	"fmt"
	"testing"

	"github.com/metehq/mete"
	"github.com/metehq/mete/ai"
	"github.com/metehq/mete/aiusage"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/storetest"
)

const aiRules = `{
	"prices": {"version": "2026-11-01", "unit": "US cent", "models": {"m": {"input": 500000, "output": 1000000}}},
	"rules": [
		{"name": "chat", "limit_keys": ["header:x-user"], "on_missing": "empty", "algorithm": "token_bucket_llm", "tokens_per_minute": 100000, "tokens_per_day": 1000000},
		{"name": "money", "group": "money", "limit_keys": ["header:x-user"], "on_missing": "empty", "rate": "1000000/1d", "cost_source": "ai:money"}],
	"loop_detection": {"enabled": true, "window_seconds": 60, "threshold_identical_requests": 2},
	"circuit_breaker": {"enabled": true, "spend_rate_threshold_per_minute": 5000}}`

func newCounts(t *testing.T) (*aiusage.Counts, *policy.Matcher) {
	t.Helper()
	m, err := policy.Load([]byte(aiRules), policy.Options{})
	if err != nil {
		t.Fatal(err)
	}
	ratios, err := ai.NewRatios(1000)
	if err != nil {
		t.Fatal(err)
	}
	ratios.Observe("m", ai.PromptSide, ai.Text{Bytes: 40, Chars: 40}, 20)
	counts := aiusage.New(ratios)
	counts.SetPolicy(m)
	return counts, m
}

func call(model string, reported bool) *policy.ModelCall {
	return &policy.ModelCall{Model: model, Reported: reported, Usage: &policy.TokenUsage{Input: 3, Cached: 1, Output: 2}}
}

// settle reports the settlement of one limit of a rule.
func settle(t *testing.T, counts *aiusage.Counts, m *policy.Matcher, rule, limit int, key string, reserved, charged bucket.Tokens) {
	r := m.Rules()[rule]
	counts.OnSettlement(t.Context(), &policy.Settlement{Rule: r, Limit: &r.Limits[limit], Key: key, Reserved: reserved * bucket.Token, Charged: charged * bucket.Token})
}

func TestCounts_CountsByModel(t *testing.T) {
	counts, _ := newCounts(t)
	counts.OnModelCall(t.Context(), call("m", true))
	counts.OnModelCall(t.Context(), call("m", false))
	counts.OnModelCall(t.Context(), &policy.ModelCall{Model: "m", Cut: policy.StreamClose})
	s := counts.State()
	if len(s.Models) != 1 {
		t.Fatalf("models %+v", s.Models)
	}
	got := s.Models[0]
	if got.Prompt.Requests != 1 || got.Prompt.Error != 0.5 {
		t.Errorf("ratio %+v", got.Prompt)
	}
	got.Prompt = ai.Ratio{}
	want := aiusage.Model{Model: "m", Reported: 1, Estimated: 1, Unknown: 1, Input: 6, Cached: 2, Output: 4, Money: 8 * bucket.Token, Closed: 1}
	if got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if want := (aiusage.Policy{Tokens: true, Money: true, Loops: true, Breakers: true, PriceUnit: "US cent", PriceVersion: "2026-11-01"}); s.Policy != want {
		t.Errorf("policy %+v, want %+v", s.Policy, want)
	}
}

// Clients choose the names of models, and get no counts of their own for names that no provider knows.
func TestCounts_BoundsModels(t *testing.T) {
	counts, _ := newCounts(t)
	for i := range 1000 {
		counts.OnModelCall(t.Context(), call(fmt.Sprint("invented", i), false))
	}
	counts.OnModelCall(t.Context(), call("", true))
	counts.OnModelCall(t.Context(), call("a\xff", true))
	if s := counts.State(); len(s.Models) != 1 || s.Models[0].Model != aiusage.OtherModels || s.Models[0].Estimated != 1000 || s.Models[0].Reported != 2 {
		t.Errorf("models %+v", s.Models)
	}
	for i := range 1000 {
		counts.OnModelCall(t.Context(), call(fmt.Sprint("real", i), true))
	}
	s := counts.State()
	requests := uint64(0)
	for i := range s.Models {
		requests += s.Models[i].Reported
	}
	if len(s.Models) != aiusage.MaxModels+1 || requests != 1002 {
		t.Errorf("%d models with %d requests, want %d and the others with 1002", len(s.Models), requests, aiusage.MaxModels)
	}
}

// The limits of a rule and the circuit breaker count the same tokens, so only the first one of each unit counts.
func TestCounts_CountsByRuleAndKey(t *testing.T) {
	counts, m := newCounts(t)
	for i := range 2 {
		settle(t, counts, m, 0, i, fmt.Sprint("chat:", i), 50, 20)
	}
	settle(t, counts, m, 1, 0, "money:a", 9, 4)
	settle(t, counts, m, 3, 0, "circuit_breaker:a", 50, 20)
	s := counts.State()
	if len(s.Rules) != 1 || s.Rules[0] != (aiusage.Rule{Rule: "chat", Reserved: 50 * bucket.Token, Charged: 20 * bucket.Token}) {
		t.Errorf("rules %+v", s.Rules)
	}
	if len(s.Tokens) != 1 || s.Tokens[0].Key != "chat:0" || s.Tokens[0].Spent != 20*bucket.Token || len(s.Money) != 1 || s.Money[0].Spent != 4*bucket.Token {
		t.Errorf("tokens %+v, money %+v", s.Tokens, s.Money)
	}
}

// Every key with more than its share of the total is listed. No amount is too low, or too high by more than its error.
func TestCounts_HeaviestKeys(t *testing.T) {
	counts, m := newCounts(t)
	for i := range 2000 {
		settle(t, counts, m, 0, 0, fmt.Sprint("chat:small", i), 10, 1)
		if i%10 == 0 {
			settle(t, counts, m, 0, 0, "chat:heavy", 10, 50)
		}
	}
	s := counts.State()
	if len(s.Tokens) != aiusage.MaxKeys {
		t.Errorf("%d keys, want %d", len(s.Tokens), aiusage.MaxKeys)
	}
	const spent = 200 * 50 * bucket.Token
	if k := s.Tokens[0]; k.Key != "chat:heavy" || k.Spent < spent || k.Spent-k.Error > spent {
		t.Errorf("first %+v, want %v", k, spent)
	}
}

func TestCounts_LoopsAndBreakers(t *testing.T) {
	counts, m := newCounts(t)
	limiter, err := mete.New(storetest.NewModel(storetest.NewClock().Now), m, mete.Config{OnDenial: counts.OnDenial})
	if err != nil {
		t.Fatal(err)
	}
	take := func(user, loop, prompt string) mete.Decision {
		t.Helper()
		d, err := limiter.Take(t.Context(), mete.Request{Attributes: mete.Attrs{"header:x-user": user, "ai:model": "m", "ai:prompt_tokens": prompt, "ai:max_tokens": "1", "ai:fingerprint": loop}})
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	take("a", "same", "1")
	take("a", "same", "1")
	take("a", "same", "1")
	s := counts.State()
	if len(s.Loops) != 1 || s.Loops[0].Denials != 2 || s.Loops[0].Until.IsZero() || len(s.Breakers) != 0 {
		t.Errorf("loops %+v, breakers %+v", s.Loops, s.Breakers)
	}
	take("b", "too much", "6000")
	if s = counts.State(); len(s.Breakers) != 0 {
		t.Errorf("breakers %+v, but a cost above the threshold opens none", s.Breakers)
	}
	take("b", "first", "3000")
	if d := take("b", "second", "3000"); d.Allowed {
		t.Fatal("the circuit breaker stays closed")
	}
	s = counts.State()
	if len(s.Breakers) != 1 || !s.Breakers[0].Until.IsZero() || s.OpenBreakers() != 1 {
		t.Fatalf("breakers %+v, want one until an administrator resets it", s.Breakers)
	}
	counts.Forget(s.Breakers[0].Key)
	if s = counts.State(); len(s.Breakers) != 0 {
		t.Errorf("breakers %+v after Forget", s.Breakers)
	}
}

// A policy without the rules drops their counts.
func TestCounts_SetPolicy(t *testing.T) {
	counts, m := newCounts(t)
	settle(t, counts, m, 0, 0, "chat:a", 50, 20)
	settle(t, counts, m, 1, 0, "money:a", 9, 4)
	counts.OnModelCall(t.Context(), call("m", true))
	other, err := policy.Load([]byte(`{"rules": [{"name": "user", "limit_keys": [], "rate": "1/1h"}]}`), policy.Options{})
	if err != nil {
		t.Fatal(err)
	}
	counts.SetPolicy(other)
	s := counts.State()
	if len(s.Rules)+len(s.Tokens)+len(s.Money) != 0 || s.Models[0].Money != 0 || s.Models[0].Input != 3 || s.Policy.InUse() {
		t.Errorf("state %+v", s)
	}
}
