// SPDX-License-Identifier: Apache-2.0

package httplimit_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/metehq/mete"
	"github.com/metehq/mete/httplimit"
	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/storetest"
)

// The hook gets the usage of each request to a language model once, from the provider or estimated. The middleware and the
// transport have the same hook.
func TestOnModelCall(t *testing.T) {
	const limited = `{"rules": [{"name": "chat", "limit_keys": [], "match": {"ai:model": "*"}, "algorithm": "token_bucket_llm", "tokens_per_minute": 200, "streaming": {"on_limit_exceeded": "error_chunk"}}]}`
	for _, tt := range []struct {
		what, request string
		handler       http.HandlerFunc
		want          policy.ModelCall // Usage is compared by text
		usage         string
	}{
		{"answer", chatRequest, func(w http.ResponseWriter, r *http.Request) { chatAnswer(w) }, policy.ModelCall{Model: "m", Reported: true}, "&{13 0 0 7 0}"},
		{"stream", chatStream, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			chunk(w, content("hello"))
			chunk(w, lastChunk)
			chunk(w, "[DONE]")
		}, policy.ModelCall{Model: "m", Reported: true}, "&{13 0 0 7 0}"},
		{"without usage", chatStream, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			chunk(w, content("hello"))
			chunk(w, "[DONE]")
		}, policy.ModelCall{Model: "m"}, "&{10 0 0 2 0}"},
		{"error", chatRequest, func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(http.StatusTeapot) }, policy.ModelCall{Model: "m"}, "<nil>"},
		{"cut", chatStream, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			for range 50 {
				if _, err := fmt.Fprintf(w, "data: %s\n\n", content(strings.Repeat("x", 80))); err != nil {
					return
				}
			}
		}, policy.ModelCall{Model: "m", Cut: policy.StreamError}, ""},
	} {
		for _, front := range []struct {
			name string
			ask  func(*testing.T, *mete.Limiter, func(context.Context, *policy.ModelCall))
		}{
			{"middleware", func(t *testing.T, limiter *mete.Limiter, hook func(context.Context, *policy.ModelCall)) {
				mw, err := httplimit.New(limiter, httplimit.Config{OnModelCall: hook})
				if err != nil {
					t.Fatal(err)
				}
				mw.Wrap(tt.handler).ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodPost, chatPath, strings.NewReader(tt.request)))
			}},
			{"transport", func(t *testing.T, limiter *mete.Limiter, hook func(context.Context, *policy.ModelCall)) {
				transport, err := httplimit.NewModelTransport(limiter, httplimit.ModelTransportConfig{OnModelCall: hook})
				if err != nil {
					t.Fatal(err)
				}
				c := &caller{Client: &http.Client{Transport: transport}}
				if _, _, err := c.post(newModelServer(t, tt.handler).URL+chatPath, tt.request); err != nil {
					t.Error(err)
				}
			}},
		} {
			t.Run(front.name+"/"+tt.what, func(t *testing.T) {
				m, err := policy.Load([]byte(limited), policy.Options{})
				if err != nil {
					t.Fatal(err)
				}
				limiter, err := mete.New(storetest.NewModel(storetest.NewClock().Now), m, mete.Config{})
				if err != nil {
					t.Fatal(err)
				}
				calls := make(chan policy.ModelCall, 2)
				front.ask(t, limiter, func(_ context.Context, c *policy.ModelCall) { calls <- *c })
				if len(calls) != 1 {
					t.Fatalf("%d calls of the hook, want 1", len(calls))
				}
				got := <-calls
				if usage := fmt.Sprint(got.Usage); tt.usage != "" && usage != tt.usage {
					t.Errorf("usage %s, want %s", usage, tt.usage)
				}
				if got.Usage = nil; got != tt.want {
					t.Errorf("got %+v, want %+v", got, tt.want)
				}
			})
		}
	}
}

// A program that closes a response early gets the usage of the whole answer. One without a response gets none.
func TestModelTransport_OnModelCall(t *testing.T) {
	calls := make(chan policy.ModelCall, 2)
	hook := func(_ context.Context, c *policy.ModelCall) { calls <- *c }
	closed := make(chan struct{})
	server := newModelServer(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		chunk(w, content("hello"))
		<-closed
		chunk(w, lastChunk)
		chunk(w, "[DONE]")
	})
	c := newCaller(t, still(), tokensPolicy, httplimit.ModelTransportConfig{OnModelCall: hook})
	res, err := c.Post(server.URL+chatPath, "application/json", strings.NewReader(chatStream))
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	close(closed)
	if got := <-calls; !got.Reported || got.Usage == nil || got.Usage.Output != 7 {
		t.Errorf("got %+v", got)
	}
	server.Close()
	if _, _, err := c.post(server.URL+chatPath, chatRequest); err == nil || len(calls) > 0 {
		t.Errorf("without a server: %v, and %d calls of the hook", err, len(calls))
	}
}
