// SPDX-License-Identifier: Apache-2.0

package ratelimitfields_test

import (
	"net/http"
	"testing"

	"github.com/metehq/mete"
	"github.com/metehq/mete/internal/ratelimitfields"
	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/storetest"
)

func TestHeader_TokensOfModels(t *testing.T) {
	m, err := policy.Load([]byte(`{"prices": {"version": "1", "models": {"*": {"input": 1, "output": 1}}}, "rules": [
		{"name": "chat", "limit_keys": [], "group": "a", "algorithm": "token_bucket_llm", "tokens_per_minute": 6000, "tokens_per_day": 8000},
		{"name": "money", "limit_keys": [], "group": "b", "rate": "5/1d", "cost_source": "ai:money"},
		{"name": "requests", "limit_keys": [], "group": "c", "rate": "10/1m"}],
		"loop_detection": {"enabled": true, "window_seconds": 60, "threshold_identical_requests": 2, "action": "warn"}}`), policy.Options{})
	if err != nil {
		t.Fatal(err)
	}
	clock := storetest.NewClock()
	l, err := mete.New(storetest.NewModel(clock.Now), m, mete.Config{})
	if err != nil {
		t.Fatal(err)
	}
	w, err := ratelimitfields.New(ratelimitfields.Config{})
	if err != nil {
		t.Fatal(err)
	}
	h := http.Header{}
	for range 2 {
		d, err := l.Take(t.Context(), mete.Request{Attributes: mete.Attrs{"ai:prompt_tokens": "500", "ai:max_tokens": "500", "ai:model": "m", "ai:fingerprint": "f"}})
		if err != nil || !d.Allowed {
			t.Fatal(err, d)
		}
		w.Header(h, &d)
	}
	for name, want := range map[string]string{
		"X-Ratelimit-Limit-Tokens": "6000", "X-Ratelimit-Remaining-Tokens": "4000", "X-Ratelimit-Reset-Tokens": "20s",
		"X-Ratelimit-Limit-Requests": "10", "X-Ratelimit-Remaining-Requests": "8", "X-Ratelimit-Reset-Requests": "12s",
		"X-Ratelimit-Warning": `"loop_detection";count=2`,
	} {
		if got := h.Get(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
}
