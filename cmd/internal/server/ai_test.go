// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/metehq/mete/internal/proctest"
)

// The gateway counts the tokens of language models for the metrics and the API, and estimates with tiktoken.
func TestAI(t *testing.T) {
	t.Parallel()
	model := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"choices": [{"index": 0, "message": {"role": "assistant", "content": "hello"}, "finish_reason": "stop"}], "usage": {"prompt_tokens": 13, "completion_tokens": 7, "total_tokens": 20}}`)
	}))
	t.Cleanup(model.Close)
	c := testConfig()
	c.Upstream = mustURL(model.URL)
	c.Policy = policyFile(t, `rules:
  - name: chat
    limit_keys: ["header:x-user"]
    match: { "ai:model": "*" }
    algorithm: token_bucket_llm
    tokens_per_minute: 1000
    token_source: { estimator: tiktoken }
`)
	s := start(t, c)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.main+"/v1/chat/completions",
		strings.NewReader(`{"model": "gpt-4o", "max_tokens": 50, "messages": [{"role": "user", "content": "antidisestablishmentarianism"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("X-User", "alice")
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	if status, body := read(t, resp); status != http.StatusOK {
		t.Fatalf("%d %s", status, body)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	err = proctest.Poll(ctx, func(context.Context) error { // the charge is settled after the response
		_, text := get(t, s.admin+"/metrics")
		for _, want := range []string{
			`mete_ai_requests_total{model="gpt-4o",usage="reported"} 1`, `mete_ai_tokens_total{class="input",model="gpt-4o"} 13`,
			`mete_ai_tokens_total{class="output",model="gpt-4o"} 7`, `mete_ai_charged_tokens_total{rule="chat"} 20`,
			`mete_ai_reserved_tokens_total{rule="chat"} 56`, // 6 by tiktoken; simple_word has 7
			`mete_ai_estimate_error_ratio{model="gpt-4o",side="prompt"}`, `mete_ai_open_breakers 0`,
		} {
			if !strings.Contains(text, want) {
				return fmt.Errorf("the metrics lack %s", want)
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	if status, text := get(t, s.admin+"/v1/ai"); status != http.StatusOK || !strings.Contains(text, `"model":"gpt-4o","reported":1`) || !strings.Contains(text, `"key":"chat/tpm:x-user=alice"`) {
		t.Errorf("%d %s", status, text)
	}
}
