// SPDX-License-Identifier: Apache-2.0

package httplimit_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/httplimit"
	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/storetest"
)

// A provider is a server with a language model behind a middleware. Its clock stands still.
type provider struct {
	*httptest.Server
	t       *testing.T
	limiter *mete.Limiter
	limits  *httplimit.Middleware
	settled chan policy.Settlement
	calls   chan []byte // the body of each request
}

func newProvider(t *testing.T, text string, handler http.HandlerFunc) *provider {
	t.Helper()
	m, err := policy.Load([]byte(text), policy.Options{})
	if err != nil {
		t.Fatal(err)
	}
	p := &provider{t: t, settled: make(chan policy.Settlement, 100), calls: make(chan []byte, 100)}
	clock := storetest.NewClock()
	p.limiter, err = mete.New(storetest.NewModel(clock.Now), m, mete.Config{OnSettlement: func(_ context.Context, s *policy.Settlement) { p.settled <- *s }})
	if err != nil {
		t.Fatal(err)
	}
	mw, err := httplimit.New(p.limiter, httplimit.Config{DisableJitter: true})
	if err != nil {
		t.Fatal(err)
	}
	p.limits = mw
	limited := mw.Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		p.calls <- body
		r.Body = io.NopCloser(bytes.NewReader(body))
		handler(w, r)
	}))
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		limited.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), clientKey{}, r.Context())))
	}))
	t.Cleanup(p.Close)
	return p
}

type clientKey struct{}

// clientOf returns the context of the client. The context of the handler can last longer.
func clientOf(r *http.Request) context.Context {
	return r.Context().Value(clientKey{}).(context.Context)
}

func (p *provider) post(path, body string) (*http.Response, string) {
	p.t.Helper()
	res, err := http.Post(p.URL+path, "application/json", strings.NewReader(body))
	if err != nil {
		p.t.Fatal(err)
	}
	defer res.Body.Close()
	got, err := io.ReadAll(res.Body)
	if err != nil {
		p.t.Fatalf("%v after %q", err, got)
	}
	return res, string(got)
}

// wantCharge waits for the settlement of a request, and compares its reserved and final cost.
func (p *provider) wantCharge(reserved, charged bucket.Tokens) {
	p.t.Helper()
	s := <-p.settled
	if s.Reserved != reserved*bucket.Token || s.Charged != charged*bucket.Token || s.Err != nil {
		p.t.Errorf("settled %v of %v (%v), want %v of %v", s.Charged, s.Reserved, s.Err, charged, reserved)
	}
}

const (
	tokensPolicy = `{"rules": [{"name": "chat", "limit_keys": [], "match": {"ai:model": "*"}, "rate": "1000/1m", "cost_source": "ai:tokens"}]}`

	// 40 characters are 10 tokens by simple_word.
	chatRequest = `{"model": "m", "max_tokens": 50, "messages": [{"role": "user", "content": "0123456789012345678901234567890123456789"}]}`
	chatStream  = `{"model": "m", "max_tokens": 50, "stream": true, "messages": [{"role": "user", "content": "0123456789012345678901234567890123456789"}]}`
)

func chatAnswer(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprint(w, `{"id": "1", "choices": [{"index": 0, "message": {"role": "assistant", "content": "hello"}, "finish_reason": "stop"}], "usage": {"prompt_tokens": 13, "completion_tokens": 7, "total_tokens": 20}}`)
}

// chunk sends an event of a stream.
func chunk(w http.ResponseWriter, data string) {
	fmt.Fprintf(w, "data: %s\n\n", data)
	w.(http.Flusher).Flush()
}

func content(text string) string {
	return fmt.Sprintf(`{"id":"1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"content":%q},"finish_reason":null}],"usage":null}`, text)
}

const lastChunk = `{"id":"1","object":"chat.completion.chunk","created":1,"model":"m","choices":[],"usage":{"prompt_tokens":13,"completion_tokens":7,"total_tokens":20}}`

func TestAI_SettlesTheUsageOfAnAnswer(t *testing.T) {
	p := newProvider(t, tokensPolicy, func(w http.ResponseWriter, r *http.Request) { chatAnswer(w) })
	if res, _ := p.post("/v1/chat/completions", chatRequest); res.StatusCode != http.StatusOK {
		t.Errorf("status %d", res.StatusCode)
	}
	p.wantCharge(60, 20)
	if got := string(<-p.calls); got != chatRequest {
		t.Errorf("the handler got %s", got)
	}
}

func TestAI_GzipAnswer(t *testing.T) {
	p := newProvider(t, tokensPolicy, func(w http.ResponseWriter, r *http.Request) {
		if got := r.Header.Get("Accept-Encoding"); got != "gzip" {
			t.Errorf("Accept-Encoding %q", got)
		}
		rec := httptest.NewRecorder()
		chatAnswer(rec)
		w.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(w)
		z.Write(rec.Body.Bytes())
		z.Close()
	})
	p.post("/v1/chat/completions", chatRequest)
	p.wantCharge(60, 20)
}

func TestAI_StreamWithoutAskedUsage(t *testing.T) {
	p := newProvider(t, tokensPolicy, func(w http.ResponseWriter, r *http.Request) {
		if got := r.Header.Get("Accept-Encoding"); got != "identity" {
			t.Errorf("Accept-Encoding %q", got)
		}
		w.Header().Set("Content-Type", "text/event-stream")
		chunk(w, content("hello"))
		chunk(w, lastChunk)
		chunk(w, "[DONE]")
	})
	_, got := p.post("/v1/chat/completions", chatStream)
	if !bytes.Contains(<-p.calls, []byte(`"stream_options":{"include_usage":true}`)) {
		t.Error("the provider was not asked for usage")
	}
	if strings.Contains(got, "usage") || !strings.Contains(got, "hello") || !strings.HasSuffix(got, "data: [DONE]\n\n") {
		t.Errorf("the client got %s", got)
	}
	p.wantCharge(60, 20)

	asking := strings.Replace(chatStream, `"stream": true`, `"stream": true, "stream_options": {"include_usage": true}`, 1)
	if _, got := p.post("/v1/chat/completions", asking); !strings.Contains(got, `"completion_tokens":7`) {
		t.Errorf("a client that asks for usage got %s", got)
	}
	p.wantCharge(60, 20)
	if got := string(<-p.calls); got != asking {
		t.Errorf("its request became %s", got)
	}
}

// With ask_usage: false, the handler gets the body of the client, and the text is estimated.
func TestAI_StreamThatIsNotAskedForUsage(t *testing.T) {
	p := newProvider(t, strings.Replace(tokensPolicy, `"cost_source"`, `"streaming": {"ask_usage": false}, "cost_source"`, 1), func(w http.ResponseWriter, r *http.Request) {
		if got := r.Header.Get("Accept-Encoding"); got != "identity" { // the stream can be cut
			t.Errorf("Accept-Encoding %q", got)
		}
		w.Header().Set("Content-Type", "text/event-stream")
		chunk(w, content("01234567"))
		chunk(w, "[DONE]")
	})
	_, got := p.post("/v1/chat/completions", chatStream)
	if body := string(<-p.calls); body != chatStream {
		t.Errorf("the handler got %s", body)
	}
	if want := "data: " + content("01234567") + "\n\ndata: [DONE]\n\n"; got != want {
		t.Errorf("the client got %s, want %s", got, want)
	}
	p.wantCharge(60, 12)
}

// A stream of 80 characters a chunk is charged while it runs, and ends when the limit has no tokens left.
func TestAI_StreamAboveItsLimit(t *testing.T) {
	const limited = `{"rules": [{"name": "chat", "limit_keys": [], "algorithm": "token_bucket_llm", "tokens_per_minute": 200, "streaming": {"buffer_tokens": 20, "on_limit_exceeded": %q}}]}`
	for _, tt := range []struct {
		what    string
		chunks  int
		sent    int // without an error
		charged bucket.Tokens
		end     string
	}{
		{"graceful_close", 10, 9, 210, `"finish_reason":"length"`},
		{"error_chunk", 10, 9, 210, "rate_limit"},
		{"continue", 50, 50, 1010, "data: [DONE]"},
	} {
		t.Run(tt.what, func(t *testing.T) {
			sent := make(chan int, 1)
			p := newProvider(t, fmt.Sprintf(limited, tt.what), func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "text/event-stream")
				for i := range 50 {
					if _, err := fmt.Fprintf(w, "data: %s\n\n", content(strings.Repeat("x", 80))); err != nil {
						sent <- i
						return
					}
				}
				chunk(w, "[DONE]")
				sent <- 50
			})
			_, got := p.post("/v1/chat/completions", chatStream)
			if n := strings.Count(got, "xxxx"); !strings.Contains(got, tt.end) || strings.Count(got, `"delta":{"content":"x`) != tt.chunks {
				t.Errorf("%d of %d chunks, and the end %q", n, tt.chunks, got[max(len(got)-300, 0):])
			}
			if n := <-sent; n != tt.sent {
				t.Errorf("the handler could send %d chunks, want %d", n, tt.sent)
			}
			p.wantCharge(60, tt.charged)
		})
	}
}

// The provider of a stream that was ended reports no hidden reasoning. The text has used up the reservation by then. A stream that
// continues pays for the reasoning.
func TestAI_ReasoningOfAStreamAboveItsLimit(t *testing.T) {
	const usage = `{"id":"1","object":"chat.completion.chunk","created":1,"model":"m","choices":[],"usage":{"prompt_tokens":10,"completion_tokens":1500,"total_tokens":1510,"completion_tokens_details":{"reasoning_tokens":500}}}`
	for _, tt := range []struct {
		end     string
		charged bucket.Tokens
	}{{"graceful_close", 210}, {"continue", 1510}} {
		p := newProvider(t, fmt.Sprintf(`{"rules": [{"name": "chat", "limit_keys": [], "algorithm": "token_bucket_llm", "tokens_per_minute": 200, "streaming": {"buffer_tokens": 20, "on_limit_exceeded": %q}}]}`, tt.end), func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			for range 50 {
				if _, err := fmt.Fprintf(w, "data: %s\n\n", content(strings.Repeat("x", 80))); err != nil {
					return
				}
			}
			fmt.Fprintf(w, "data: %s\n\ndata: [DONE]\n\n", usage)
		})
		p.post("/v1/chat/completions", chatStream)
		p.wantCharge(60, tt.charged)
	}
}

// A provider can send many events at once. The client gets no more of them than of single events.
func TestAI_EventsInOneWrite(t *testing.T) {
	p := newProvider(t, `{"rules": [{"name": "chat", "limit_keys": [], "algorithm": "token_bucket_llm", "tokens_per_minute": 200, "streaming": {"buffer_tokens": 20}}]}`, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, strings.Repeat("data: "+content(strings.Repeat("x", 80))+"\n\n", 50)+"data: [DONE]\n\n")
	})
	_, got := p.post("/v1/chat/completions", chatStream)
	if n := strings.Count(got, `"delta":{"content":"x`); n != 10 || !strings.HasSuffix(got, "data: [DONE]\n\n") || !strings.Contains(got, `"finish_reason":"length"`) {
		t.Errorf("%d events, and the end %q", n, got[max(len(got)-300, 0):])
	}
	p.wantCharge(60, 210)
}

// The stream of a ReverseProxy is cut without an aborted connection, so that the client sees a complete response.
func TestAI_CutsTheStreamOfAReverseProxy(t *testing.T) {
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for r.Context().Err() == nil {
			fmt.Fprintf(w, "data: %s\n\n", content(strings.Repeat("x", 80)))
			w.(http.Flusher).Flush()
		}
	}))
	defer upstream.Close()
	to, _ := url.Parse(upstream.URL)
	reverse := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to) }}
	p := newProvider(t, `{"name": "chat", "limit_keys": [], "algorithm": "token_bucket_llm", "tokens_per_minute": 200}`, reverse.ServeHTTP)
	_, got := p.post("/v1/chat/completions", chatStream)
	if !strings.HasSuffix(got, "data: [DONE]\n\n") || !strings.Contains(got, `"finish_reason":"length"`) {
		t.Errorf("the stream ends with %q", got[max(len(got)-300, 0):])
	}
	if s := <-p.settled; s.Charged < 200*bucket.Token {
		t.Errorf("charged %v", s.Charged)
	}
}

func TestAI_UnreadableResponses(t *testing.T) {
	for _, tt := range []struct {
		what    string
		handler http.HandlerFunc
		charged bucket.Tokens
	}{
		{"another content coding", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Encoding", "br")
			fmt.Fprint(w, "????")
		}, 60},
		{"no usage", func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprint(w, `{"choices": [{"message": {"content": "01234567"}}]}`)
		}, 12},
		{"another object", func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprint(w, `{"data": [{"url": "https://example.com/1.png"}]}`)
		}, 60},
		{"an error of the provider", func(w http.ResponseWriter, r *http.Request) {
			http.Error(w, `{"error": {"message": "overloaded"}}`, 529)
		}, 0},
		{"negative usage", func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprint(w, `{"choices": [{"message": {"content": "01234567"}}], "usage": {"prompt_tokens": -5, "completion_tokens": -5}}`)
		}, 12},
		{"absurd usage", func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprint(w, `{"choices": [{"message": {"content": "01234567"}}], "usage": {"prompt_tokens": 5, "completion_tokens": 99999999999999}}`)
		}, 12},
		{"usage above the largest context window", func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprint(w, `{"choices": [{"message": {"content": "01234567"}}], "usage": {"prompt_tokens": 5, "completion_tokens": 20000000, "total_tokens": 20000005}}`)
		}, 12},
		{"usage without a prompt", func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprint(w, `{"choices": [{"message": {"content": "01234567"}}], "usage": {"completion_tokens": 7}}`)
		}, 17},
		{"usage of zero", func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprint(w, `{"choices": [{"message": {"content": "01234567"}}], "usage": {"prompt_tokens": 0, "completion_tokens": 0}}`)
		}, 12},
		{"less usage than text", func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprintf(w, `{"choices": [{"message": {"content": %q}}], "usage": {"prompt_tokens": 10, "completion_tokens": 1}}`, strings.Repeat("x", 400))
		}, 110},
	} {
		t.Run(tt.what, func(t *testing.T) {
			p := newProvider(t, tokensPolicy, tt.handler)
			p.post("/v1/chat/completions", chatRequest)
			p.wantCharge(60, tt.charged)
		})
	}
}

// A compressed stream cannot be changed: the connection breaks at the limit.
func TestAI_CompressedStreamAboveItsLimit(t *testing.T) {
	sent := make(chan int, 1)
	p := newProvider(t, `{"name": "chat", "limit_keys": [], "algorithm": "token_bucket_llm", "tokens_per_minute": 200}`, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		w.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(w)
		for i := range 500 {
			fmt.Fprintf(z, "data: %s\n\n", content(strings.Repeat("x", 80)))
			if z.Flush() != nil {
				sent <- i
				panic(http.ErrAbortHandler)
			}
		}
		sent <- 500
	})
	if res, err := http.Post(p.URL+"/v1/chat/completions", "application/json", strings.NewReader(chatStream)); err == nil { // it can break before its header
		defer res.Body.Close()
		if _, err := io.ReadAll(res.Body); err == nil {
			t.Error("the response is complete")
		}
	}
	if n := <-sent; n > 20 {
		t.Errorf("the handler could send %d events", n)
	}
}

// A limit that refuses a debt does not cut a stream that continues.
func TestAI_ContinuesWithoutADebt(t *testing.T) {
	p := newProvider(t, `{"name": "chat", "limit_keys": [], "rate": "100/1m", "max_reserved": 0, "cost_source": "ai:tokens"}`, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for range 50 {
			chunk(w, content(strings.Repeat("x", 80)))
		}
		chunk(w, "[DONE]")
	})
	if _, got := p.post("/v1/chat/completions", chatStream); strings.Count(got, `"delta":{"content":"x`) != 50 || !strings.HasSuffix(got, "data: [DONE]\n\n") {
		t.Errorf("the client got %d bytes, ending with %q", len(got), got[max(len(got)-100, 0):])
	}
}

// A rule in shadow changes neither the request nor its response.
func TestAI_ShadowChangesNothing(t *testing.T) {
	var encodings []string
	p := newProvider(t, strings.Replace(tokensPolicy, `"name"`, `"mode": "shadow", "name"`, 1), func(w http.ResponseWriter, r *http.Request) {
		encodings = r.Header["Accept-Encoding"]
		w.Header().Set("Content-Type", "text/event-stream")
		chunk(w, lastChunk)
	})
	_, got := p.post("/v1/chat/completions", chatStream)
	if body := string(<-p.calls); body != chatStream || !slices.Equal(encodings, []string{"gzip"}) || !strings.Contains(got, "usage") {
		t.Errorf("the handler got %s and %q, and the client %s", body, encodings, got)
	}
	if s := <-p.settled; !s.Shadow || s.Charged != 20*bucket.Token {
		t.Errorf("settled %+v", s)
	}
}
