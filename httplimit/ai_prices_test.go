// SPDX-License-Identifier: Apache-2.0

package httplimit_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
)

// A server can answer with a fallback. The higher price counts, and a dated version is the same model.
func TestAI_ServedModel(t *testing.T) {
	const money = `{"prices": {"version": "1", "unit": "cent", "models": {"cheap": {"input": 10000, "output": 10000}, "dear*": {"input": 1000000, "output": 1000000}}},
		"rules": [{"name": "money", "limit_keys": [], "match": {"ai:model": "*"}, "rate": "1000000/1m", "cost_source": "ai:money"}]}`
	for _, tt := range []struct {
		requested, served string
		charged           bucket.Tokens
	}{
		{"cheap", "cheap", 200},
		{"cheap", "cheap-2026-11-01", 200},
		{"cheap", "a model without a price", 200},
		{"cheap", "dear-2026-11-01", 20 * bucket.Token},
		{"dear", "cheap", 20 * bucket.Token},
		{"cheap", "", 200},
	} {
		p := newProvider(t, money, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, `{"id": "1", "model": %q, "choices": [{"index": 0, "message": {"content": "hello"}, "finish_reason": "stop"}], "usage": {"prompt_tokens": 13, "completion_tokens": 7}}`, tt.served)
		})
		if res, body := p.post("/v1/chat/completions", fmt.Sprintf(`{"model": %q, "messages": []}`, tt.requested)); res.StatusCode != http.StatusOK {
			t.Fatal(body)
		}
		if s := <-p.settled; s.Charged != tt.charged {
			t.Errorf("%s answers for %s: charged %v, want %v", tt.served, tt.requested, s.Charged, tt.charged)
		}
	}
}

// Some servers run several models for one request, and answer with an array.
func TestAI_ArrayOfAnswers(t *testing.T) {
	p := newProvider(t, `{"rules": [{"name": "chat", "limit_keys": [], "match": {"ai:model": "*"}, "rate": "100000/1m", "cost_source": "ai:tokens"}]}`,
		func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, `[{"choices": [{"index": 0, "finish_reason": "stop"}], "usage": {"prompt_tokens": 13, "completion_tokens": 300}},
				{"choices": [{"index": 0, "finish_reason": "stop"}], "usage": {"prompt_tokens": 13, "completion_tokens": 7}}]`)
		})
	p.post("/v1/chat/completions", `{"model": "a,b", "messages": []}`)
	if s := <-p.settled; s.Charged != 333*bucket.Token {
		t.Errorf("charged %v, want the 313 and 20 tokens of both answers", s.Charged)
	}
}

// The hidden reasoning of one client does not make the texts of another one longer.
func TestAI_ReasoningIsNotLearned(t *testing.T) {
	texts := 3 // of 100 tokens
	usage := `{"id":"1","choices":[],"usage":{"prompt_tokens":13,"completion_tokens":20300,"total_tokens":20313,"completion_tokens_details":{"reasoning_tokens":20000}}}`
	p := newProvider(t, `{"rules": [{"name": "chat", "limit_keys": ["header:x-user"], "on_missing": "empty", "match": {"ai:model": "*"}, "algorithm": "token_bucket_llm", "tokens_per_minute": 100000, "burst_tokens": 100000}]}`,
		func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			for range texts {
				chunk(w, content(strings.Repeat("word", 100)))
			}
			chunk(w, `{"id":"1","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`)
			chunk(w, usage)
			fmt.Fprint(w, "data: [DONE]\n\n")
		})
	post := func(user string, most int) string {
		req, err := http.NewRequest(http.MethodPost, p.URL+"/v1/chat/completions", strings.NewReader(fmt.Sprintf(`{"model": "m", "stream": true, "max_tokens": %d, "messages": []}`, most)))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("X-User", user)
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		body, err := io.ReadAll(res.Body)
		if err != nil {
			t.Error(err)
		}
		return string(body)
	}
	post("reasons", 40000)
	<-p.settled
	texts, usage = 100, `{"id":"1","choices":[],"usage":{"prompt_tokens":13,"completion_tokens":10000,"total_tokens":10013}}`
	// The other client has a budget of 100,000. This leaves its reservation of 10,000, and 15,000 more.
	d, err := p.limiter.Take(t.Context(), mete.Request{Attributes: mete.Attrs{"header:x-user": "writes", "ai:model": "m", "ai:prompt_tokens": "75000", "ai:max_tokens": "1"}})
	if err != nil || !d.Allowed {
		t.Fatal(d, err)
	}
	if body := post("writes", 10000); strings.Count(body, "word") != 10000 || strings.Contains(body, `"length"`) {
		t.Errorf("a stream within its reservation was cut after %d of 10,000 tokens", strings.Count(body, "word"))
	}
}
