// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"testing"
	"time"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/policy"
)

// llmPolicy is a policy of another product, as its files have it.
const llmPolicy = `{
  "bundle_version": 1, "expires_at": "2030-01-01T00:00:00Z",
  "policies": [{"id": "llm-policy", "spec": {
    "selector": {"pathExact": "/v1/chat/completions", "methods": ["POST"]},
    "mode": "enforce",
    "rules": [{
      "name": "llm-token-limit", "limit_keys": ["jwt:org_id"], "algorithm": "token_bucket_llm",
      "algorithm_config": {
        "algorithm": "token_bucket_llm", "tokens_per_minute": 120000, "tokens_per_day": 2000000, "burst_tokens": 130000,
        "default_max_completion_tokens": 1024, "max_prompt_tokens": 8000, "max_completion_tokens": 4096, "max_tokens_per_request": 10000,
        "token_source": {"estimator": "header_hint"},
        "streaming": {"enabled": true, "buffer_tokens": 50, "on_limit_exceeded": "error_chunk", "include_partial_usage": false}
      }
    }],
    "loop_detection": {"enabled": true, "window_seconds": 60, "threshold_identical_requests": 10, "action": "reject", "similarity": "exact"},
    "circuit_breaker": {"enabled": true, "spend_rate_threshold_per_minute": 100000, "action": "reject", "alert": true, "auto_reset_after_minutes": 5}
  }}]
}`

func llmRequest(more policy.Map) policy.Map {
	request := policy.Map{"path": "/v1/chat/completions", "method": "POST", "jwt:org_id": "acme", "ai:prompt_tokens": "500"}
	for name, value := range more {
		request[name] = value
	}
	return request
}

func TestLLM_PolicyOfAnotherProduct(t *testing.T) {
	m := loadText(t, llmPolicy)
	rules := m.Rules()
	if len(rules) != 3 || rules[0].Name != "llm-token-limit" || rules[1].Name != "llm-policy/loop_detection" || rules[2].Name != "llm-policy/circuit_breaker" {
		t.Fatalf("rules %v", rules)
	}
	minute, day := rules[0].Limits[0], rules[0].Limits[1]
	if minute.Name != "llm-token-limit/tpm" || minute.Reason != "tpm_exceeded" || minute.Bucket.Capacity() != 130_000*bucket.Token || minute.Rate.Per != time.Minute {
		t.Errorf("limit per minute: %+v", minute)
	}
	if day.Name != "llm-token-limit/tpd" || day.Reason != "tpd_exceeded" || day.Bucket.Capacity() != 2_000_000*bucket.Token || day.Bucket.Anchor() != bucket.AnchorCalendar {
		t.Errorf("limit per day: %+v", day)
	}
	if s := minute.Streaming(); *s != (policy.Streaming{Every: 50, OnLimit: policy.StreamError, AskUsage: true}) {
		t.Errorf("streaming %+v", *s)
	}
	breaker := rules[2].Limits[0]
	if breaker.Reason != policy.ReasonBreaker || breaker.Penalty == nil || breaker.Penalty.First() != 5*time.Minute || !breaker.AI() {
		t.Errorf("breaker: %+v", breaker)
	}
	loop := rules[1].Limits[0]
	if loop.Reason != policy.ReasonLoop || loop.Bucket.Capacity() != 9*bucket.Token || loop.Rate.Per != time.Minute {
		t.Errorf("loop: %+v", loop)
	}
}

func TestLLM_Costs(t *testing.T) {
	m := loadText(t, llmPolicy)
	for _, tt := range []struct {
		what string
		more policy.Map
		cost bucket.Tokens
		why  string
	}{
		{"default completion", nil, 1524, ""},
		{"asked completion", policy.Map{"ai:max_tokens": "100"}, 600, ""},
		{"completion above its bound", policy.Map{"ai:max_tokens": "9000"}, 4596, ""},
		{"completion of too many digits", policy.Map{"ai:max_tokens": "99999999999999999999"}, 4596, policy.ReasonRequestTokens},
		{"several completions", policy.Map{"ai:choices": "3"}, 500 + 3*1024, ""},
		{"a completion that is no number", policy.Map{"ai:max_tokens": "-5"}, 1524, ""},
		{"hint", policy.Map{"header:x-token-estimate": "2000"}, 3024, ""},
		{"negative hint", policy.Map{"header:x-token-estimate": "-100000"}, 1524, ""},
		{"hint that is no number", policy.Map{"header:x-token-estimate": "nan"}, 1524, ""},
		{"no estimate", policy.Map{"ai:prompt_tokens": ""}, 1024, ""},
		{"long prompt", policy.Map{"ai:prompt_tokens": "8001"}, 9025, policy.ReasonPromptTokens},
		{"long prompt of too many digits", policy.Map{"ai:prompt_tokens": "99999999999999999999"}, 1_000_001_024, policy.ReasonPromptTokens},
		{"long request", policy.Map{"ai:prompt_tokens": "7000", "ai:max_tokens": "3001"}, 10001, policy.ReasonRequestTokens},
	} {
		matches, verdict := m.Match(nil, llmRequest(tt.more), 0, 0)
		if len(matches) != 3 {
			t.Fatalf("%s: %d matches, want both limits and the breaker", tt.what, len(matches))
		}
		for _, match := range matches {
			if match.Cost != tt.cost*bucket.Token {
				t.Errorf("%s: limit %s costs %v, want %v", tt.what, match.Limit.Name, match.Cost, tt.cost)
			}
		}
		if verdict.Why != tt.why || verdict.Denies() != (tt.why != "") {
			t.Errorf("%s: verdict %q, denies %v, want %q", tt.what, verdict.Why, verdict.Denies(), tt.why)
		}
	}
	if _, verdict := loadText(t, `{"rules": [{"name": "r", "limit_keys": [], "mode": "shadow", "algorithm": "token_bucket_llm", "tokens_per_minute": 5000, "max_prompt_tokens": 10}]}`).Match(nil, policy.Map{"ai:prompt_tokens": "11"}, 0, 0); verdict.Denies() {
		t.Error("a rule in shadow denies a long prompt")
	}
}

func TestLLM_FinalCost(t *testing.T) {
	m := loadText(t, `{
		"prices": {"version": "2026-11-01", "unit": "US cent", "models": {"gpt-4o": {"input": 250, "output": 1000, "cached": 125}, "gpt-4o-mini*": {"input": 15, "output": 60}, "gpt-*": {"input": 100, "output": 100}}},
		"rules": [
			{"name": "tokens", "limit_keys": [], "group": "a", "algorithm": "cost_based", "budget": 100000, "period": "day", "timezone": "UTC", "cost_source": "ai:tokens", "weights": {"input": 1, "output": 4, "cached": 0.1}},
			{"name": "money", "limit_keys": [], "group": "b", "algorithm": "cost_based", "budget": 500, "period": "month", "timezone": "UTC", "cost_source": "ai:money", "default_max_completion": 100}]}`)
	if m.Prices().Version() != "2026-11-01" {
		t.Errorf("price version %q", m.Prices().Version())
	}
	tokens, money := &m.Rules()[0].Limits[0], &m.Rules()[1].Limits[0]
	usage := &policy.TokenUsage{Input: 1000, Cached: 2000, Output: 500, Reasoning: 100}
	for _, tt := range []struct {
		what string
		l    *policy.Limit
		res  policy.Response
		want bucket.Tokens
	}{
		{"weights", tokens, policy.Response{Status: 200, Usage: usage, Ended: true}, 1000*1000 + 2000*100 + 600*4000},
		{"price of a model", money, policy.Response{Status: 200, Usage: usage, Model: "gpt-4o"}, 250 + 250 + 600},
		{"price of the longest prefix", money, policy.Response{Status: 200, Usage: usage, Model: "gpt-4o-mini-2024"}, 15 + 30 + 36},
		{"price of a prefix", money, policy.Response{Status: 200, Usage: usage, Model: "gpt-5"}, 100 + 200 + 60},
		{"the highest prices for an unknown model", money, policy.Response{Status: 200, Usage: usage, Model: "claude"}, 250 + 250 + 600},
		{"a fraction is rounded up", money, policy.Response{Status: 200, Usage: &policy.TokenUsage{Input: 1}, Model: "gpt-4o-mini"}, 1},
		{"absurd usage", tokens, policy.Response{Status: 200, Usage: &policy.TokenUsage{Input: -5, Output: 1 << 62}}, 4_000_000_000_000},
		{"unknown usage", tokens, policy.Response{Status: 200, Ended: true}, 777},
		{"an error of the provider is free", tokens, policy.Response{Status: 529, Ended: true}, 0},
		{"a client that leaves before the response", tokens, policy.Response{Ended: true}, 777},
	} {
		if got := tt.l.FinalCost(777, &tt.res); got != tt.want {
			t.Errorf("%s: final cost %v, want %v", tt.what, got, tt.want)
		}
	}
	matches, _ := m.Match(nil, policy.Map{"ai:model": "gpt-4o", "ai:prompt_tokens": "1000", "ai:max_tokens": "200"}, 0, 0)
	if len(matches) != 2 || matches[0].Cost != (1000+4*200)*bucket.Token || matches[1].Cost != 250+200 {
		t.Errorf("reserved costs %+v", matches)
	}
}

func TestGuards_Actions(t *testing.T) {
	rule := func(guards string) *policy.Matcher {
		return loadText(t, `{"rules": [{"name": "r", "limit_keys": ["jwt:sub"], "rate": "10/1s", "cost_source": "header:x-cost", "max_cost": 5, "min_cost": 1}], "fallback_limit": {"rate": "1/1s"}, `+guards+`}`)
	}
	request := policy.Map{"jwt:sub": "a", "ai:fingerprint": "f", "header:x-cost": "3"}
	names := func(m *policy.Matcher, request policy.Map) (all []string) {
		matches, _ := m.Match(nil, request, 0, 0)
		for _, match := range matches {
			all = append(all, match.Limit.Name+" "+match.Key+" "+match.Cost.String())
		}
		return all
	}
	same := func(got []string, want ...string) {
		t.Helper()
		if len(got) != len(want) {
			t.Errorf("matches %q, want %q", got, want)
			return
		}
		for i := range want {
			if got[i] != want[i] {
				t.Errorf("match %q, want %q", got[i], want[i])
			}
		}
	}
	throttle := rule(`"loop_detection": {"enabled": true, "window_seconds": 60, "threshold_identical_requests": 3, "action": "throttle"}`)
	same(names(throttle, request), "r r:sub=a 3", "loop_detection loop_detection:fingerprint=f|sub=a 1")
	// A request without a fingerprint is in no loop, and one without the key of the rule has the fallback.
	same(names(throttle, policy.Map{"jwt:sub": "a"}), "r r:sub=a 1")
	same(names(throttle, policy.Map{"ai:fingerprint": "f"}), "fallback fallback: 1", "loop_detection loop_detection:fingerprint=f|sub= 1")
	l := &throttle.Rules()[2].Limits[0]
	for used, want := range map[bucket.Tokens]time.Duration{3: 300 * time.Millisecond, 10: time.Second, 299: 29900 * time.Millisecond, 5000: 30 * time.Second} {
		if s := l.Stage(used * bucket.Token); s == nil || s.Delay != want {
			t.Errorf("throttled after %v requests: %+v, want %v", used, s, want)
		}
	}
	if l.Stage(2*bucket.Token) != nil || !throttle.Delays() {
		t.Error("two requests are throttled, or the policy does not delay")
	}
	warn := rule(`"loop_detection": {"enabled": true, "window_seconds": 60, "threshold_identical_requests": 3, "action": "warn"}`)
	if s := warn.Rules()[2].Limits[0].Stage(3 * bucket.Token); s == nil || s.Delay != 0 {
		t.Errorf("stage of a warning: %+v", s)
	}
	breaker := rule(`"circuit_breaker": {"enabled": true, "spend_rate_threshold_per_minute": 7}`)
	same(names(breaker, request), "r r:sub=a 3", "circuit_breaker circuit_breaker:sub=a 3")
	if p := breaker.Rules()[2].Limits[0].Penalty; p.First() != bucket.MaxPenalty {
		t.Errorf("a breaker without a reset stays open for %v", p.First())
	}
	if off := rule(`"loop_detection": {"enabled": false}, "circuit_breaker": {}`); len(off.Rules()) != 2 {
		t.Errorf("%d rules with disabled guards", len(off.Rules()))
	}
}

func TestLLM_BadFields(t *testing.T) {
	const llm = `{"name": "r", "limit_keys": [], "algorithm": "token_bucket_llm", "algorithm_config": `
	for _, tt := range []struct{ text, want string }{
		{llm + `{}}`, `"tokens_per_minute" is missing`},
		{llm + `{"tokens_per_minute": 100, "burst_tokens": 99}}`, "burst_tokens is below the tokens_per_minute of 100"},
		{llm + `{"tokens_per_minute": 100, "rate": "1/1s"}}`, "use tokens_per_minute"},
		{llm + `{"tokens_per_minute": 100, "max_prompt_tokens": 0}}`, "max_prompt_tokens must be a whole number from 1 to 1000000000"},
		{llm + `{"tokens_per_minute": 100, "max_prompt_tokens": 9, "max_tokens_per_request": 8}}`, "max_prompt_tokens is above the max_tokens_per_request of 8"},
		{llm + `{"tokens_per_minute": 100, "token_source": {"estimator": "words"}}}`, "estimator must be simple_word, header_hint, tiktoken or learned"},
		{llm + `{"tokens_per_minute": 100, "streaming": {"on_limit_exceeded": "stop"}}}`, "on_limit_exceeded must be continue, graceful_close or error_chunk"},
		{llm + `{"tokens_per_minute": 100, "streaming": {"ask_usage": "never"}}}`, "ask_usage must be true or false"},
		{llm + `{"tokens_per_minute": 100, "weights": {"input": 0, "output": 0}}}`, "requests cost nothing"},
		{llm + `{"tokens_per_minute": 100, "weights": {"input": 1000001}}}`, "input must be at most 1000000"},
		{`{"name": "r", "limit_keys": [], "rate": "1/1s", "weights": {"output": 2}}`, "weights requires the cost of a language model"},
		{`{"name": "r", "limit_keys": [], "rate": "1/1s", "cost_source": "ai:money"}`, "needs the prices of the models"},
		{`{"name": "r", "limit_keys": ["ai:modle"], "rate": "1/1s"}`, "unknown attribute of a request to a language model"},
		{`{"prices": {"models": {"a": {"input": 1, "output": 1}}}, "rules": [{"name": "r", "limit_keys": [], "rate": "1/1s"}]}`, `"version" is missing`},
		{`{"prices": {"version": "1", "models": {}}, "rules": [{"name": "r", "limit_keys": [], "rate": "1/1s"}]}`, "models must be an object with 1 to 1000 models"},
		{`{"rules": [{"name": "r", "limit_keys": [], "rate": "1/1s"}], "loop_detection": {"enabled": true, "window_seconds": 60, "threshold_identical_requests": 1}}`, "threshold_identical_requests must be a whole number from 2"},
		{`{"rules": [{"name": "r", "limit_keys": [], "rate": "1/1s"}], "loop_detection": {"enabled": true, "window_seconds": 60, "threshold_identical_requests": 2, "similarity": "fuzzy"}}`, "similarity must be exact"},
		{`{"rules": [{"name": "r", "limit_keys": [], "rate": "1/1s"}], "circuit_breaker": {"enabled": true}}`, `"spend_rate_threshold_per_minute" is missing`},
		{`{"rules": [{"name": "a", "limit_keys": ["query:a", "query:b", "query:c", "query:d"], "rate": "1/1s"}, {"name": "b", "limit_keys": ["query:e", "query:f", "query:g", "query:h"], "rate": "1/1s"}],
			"loop_detection": {"enabled": true, "window_seconds": 60, "threshold_identical_requests": 2}}`, "tell clients apart by 8 attributes, and loop_detection by at most 7"},
		{`{"rules": [{"name": "circuit_breaker", "limit_keys": [], "rate": "1/1s"}], "circuit_breaker": {"enabled": true, "spend_rate_threshold_per_minute": 9}}`, "is already used or too long"},
	} {
		refused(t, tt.text, tt.want)
	}
}

func TestLLM_ExpectedResponse(t *testing.T) {
	l := &loadText(t, llmPolicy).Rules()[0].Limits[0]
	if got := l.ExpectedResponse(); got != 2*time.Minute {
		t.Errorf("the first answer is expected within %v", got)
	}
	l.ObserveResponse(10 * time.Second)
	if got := l.ExpectedResponse(); got != 40*time.Second {
		t.Errorf("after an answer of 10 s, one is expected within %v", got)
	}
}
