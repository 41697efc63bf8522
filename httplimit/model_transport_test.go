// SPDX-License-Identifier: Apache-2.0

package httplimit_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/httplimit"
	"github.com/metehq/mete/memstore"
	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/storetest"
)

// A caller is a program that calls a provider through a ModelTransport.
type caller struct {
	*http.Client
	t       *testing.T
	limiter *mete.Limiter
	settled chan policy.Settlement
}

func newCaller(t *testing.T, store mete.Store, text string, config httplimit.ModelTransportConfig) *caller {
	t.Helper()
	m, err := policy.Load([]byte(text), policy.Options{})
	if err != nil {
		t.Fatal(err)
	}
	c := &caller{t: t, settled: make(chan policy.Settlement, 1000)}
	c.limiter, err = mete.New(store, m, mete.Config{OnSettlement: func(_ context.Context, s *policy.Settlement) { c.settled <- *s }})
	if err != nil {
		t.Fatal(err)
	}
	transport, err := httplimit.NewModelTransport(c.limiter, config)
	if err != nil {
		t.Fatal(err)
	}
	c.Client = &http.Client{Transport: transport}
	return c
}

// post returns a response whose body has been read.
func (c *caller) post(url, body string) (*http.Response, string, error) {
	res, err := c.Post(url, "application/json", strings.NewReader(body))
	if err != nil {
		return nil, "", err
	}
	defer res.Body.Close()
	got, err := io.ReadAll(res.Body)
	return res, string(got), err
}

func (c *caller) wantCharge(reserved, charged bucket.Tokens) {
	c.t.Helper()
	s := <-c.settled
	if s.Reserved != reserved*bucket.Token || s.Charged != charged*bucket.Token || s.Err != nil {
		c.t.Errorf("settled %v of %v (%v), want %v of %v", s.Charged, s.Reserved, s.Err, charged, reserved)
	}
}

const chatPath = "/v1/chat/completions"

func newModelServer(t *testing.T, handler http.HandlerFunc) *httptest.Server {
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return server
}

func still() mete.Store { return storetest.NewModel(storetest.NewClock().Now) }

func TestModelTransport_SettlesAnAnswer(t *testing.T) {
	got := make(chan string, 1)
	server := newModelServer(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got <- string(body)
		chatAnswer(w)
	})
	c := newCaller(t, still(), tokensPolicy, httplimit.ModelTransportConfig{})
	if res, body, err := c.post(server.URL+chatPath, chatRequest); err != nil || res.StatusCode != http.StatusOK || !strings.Contains(body, "hello") {
		t.Errorf("got %s (%v)", body, err)
	}
	if body := <-got; body != chatRequest {
		t.Errorf("the provider got %s", body)
	}
	c.wantCharge(60, 20)
}

// A long body that means another request than the one that was charged fails, and costs nothing.
func TestModelTransport_LateMember(t *testing.T) {
	whole := make(chan error, 2)
	server := newModelServer(t, func(w http.ResponseWriter, r *http.Request) {
		_, err := io.Copy(io.Discard, r.Body)
		whole <- err
	})
	c := newCaller(t, still(), strings.Replace(tokensPolicy, "1000/1m", "600000/1m", 1), httplimit.ModelTransportConfig{MaxWait: -1})
	body := `{"model":"m","messages":[{"content":"` + strings.Repeat("x", 2<<20) + `"}],"n":5}`
	for range 2 { // the limit is too low for two charges
		if res, _, err := c.post(server.URL+chatPath, body); err == nil || !strings.Contains(err.Error(), "the number of choices is behind the first") {
			t.Errorf("got %v, %v", res, err)
		}
		if err := <-whole; err == nil {
			t.Error("the provider got the whole request")
		}
	}
}

// The provider is asked for usage, also if net/http has to send the request again, and the program does not see it.
func TestModelTransport_AsksForUsage(t *testing.T) {
	var calls atomic.Int32
	server := newModelServer(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if calls.Add(1) == 2 { // the second request of a kept connection: net/http sends it again on a new one
			conn, _, _ := http.NewResponseController(w).Hijack()
			conn.Close()
			return
		}
		if !bytes.Contains(body, []byte(`"stream_options":{"include_usage":true}`)) {
			t.Errorf("the provider got %s", body)
		}
		w.Header().Set("Content-Type", "text/event-stream")
		chunk(w, content("hello"))
		chunk(w, lastChunk)
		chunk(w, "[DONE]")
	})
	c := newCaller(t, still(), tokensPolicy, httplimit.ModelTransportConfig{})
	for range 2 {
		req, _ := http.NewRequest(http.MethodPost, server.URL+chatPath, strings.NewReader(chatStream))
		req.Header.Set("Idempotency-Key", "1")
		before := req.ContentLength
		res, err := c.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		got, _ := io.ReadAll(res.Body)
		res.Body.Close()
		if strings.Contains(string(got), "usage") || !strings.HasSuffix(string(got), "data: [DONE]\n\n") {
			t.Errorf("the program got %s", got)
		}
		if req.ContentLength != before || req.Header.Get("Accept-Encoding") != "" {
			t.Error("the transport changed the program's request")
		}
		c.wantCharge(60, 20)
	}
	if calls.Load() != 3 {
		t.Errorf("%d calls, want 3", calls.Load())
	}
}

func TestModelTransport_DoesNotAskForUsage(t *testing.T) {
	server := newModelServer(t, func(w http.ResponseWriter, r *http.Request) {
		if body, _ := io.ReadAll(r.Body); string(body) != chatStream {
			t.Errorf("the provider got %s", body)
		}
		w.Header().Set("Content-Type", "text/event-stream")
		chunk(w, content("01234567"))
		chunk(w, "[DONE]")
	})
	c := newCaller(t, still(), strings.Replace(tokensPolicy, `"cost_source"`, `"streaming": {"ask_usage": false}, "cost_source"`, 1), httplimit.ModelTransportConfig{})
	if _, body, err := c.post(server.URL+chatPath, chatStream); err != nil || !strings.HasSuffix(body, "data: [DONE]\n\n") {
		t.Errorf("the program got %s (%v)", body, err)
	}
	c.wantCharge(60, 12)
}

// A stream of 80 characters a chunk is charged while the program reads it.
func TestModelTransport_StreamAboveItsLimit(t *testing.T) {
	for _, tt := range []struct {
		what    string
		chunks  int
		charged bucket.Tokens
		end     string
	}{
		{"graceful_close", 10, 210, `"finish_reason":"length"`},
		{"error_chunk", 10, 210, "rate_limit"},
		{"continue", 50, 1010, "data: [DONE]"},
	} {
		t.Run(tt.what, func(t *testing.T) {
			next, gone := make(chan struct{}), make(chan struct{}, 1)
			server := newModelServer(t, func(w http.ResponseWriter, r *http.Request) {
				defer func() { gone <- struct{}{} }()
				w.Header().Set("Content-Type", "text/event-stream")
				for range 50 {
					chunk(w, content(strings.Repeat("x", 80)))
					select {
					case <-next: // the program has read the event
					case <-r.Context().Done():
						return
					}
				}
				chunk(w, "[DONE]")
			})
			c := newCaller(t, still(), fmt.Sprintf(`{"name": "chat", "limit_keys": [], "algorithm": "token_bucket_llm", "tokens_per_minute": 200,
				"streaming": {"buffer_tokens": 20, "on_limit_exceeded": %q}}`, tt.what), httplimit.ModelTransportConfig{})
			res, err := c.Post(server.URL+chatPath, "application/json", strings.NewReader(chatStream))
			if err != nil {
				t.Fatal(err)
			}
			defer res.Body.Close()
			var all []byte
			for piece := make([]byte, 64); ; { // smaller than an event
				n, err := res.Body.Read(piece)
				all = append(all, piece[:n]...)
				if err == io.EOF {
					break
				}
				if err != nil {
					t.Fatal(err)
				}
				if bytes.HasSuffix(all, []byte("\n\n")) && !bytes.Contains(all, []byte(tt.end)) {
					next <- struct{}{}
				}
			}
			if n := bytes.Count(all, []byte(`"delta":{"content":"x`)); n != tt.chunks || !bytes.Contains(all, []byte(tt.end)) {
				t.Errorf("%d chunks, and the end %q", n, all[max(len(all)-300, 0):])
			}
			c.wantCharge(60, tt.charged)
			<-gone
		})
	}
}

// A stream that arrives in one piece is cut like any other. Each of its events has 20 tokens.
func TestModelTransport_ManyEventsAtOnce(t *testing.T) {
	base := inProcess{handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		io.WriteString(w, strings.Repeat(fmt.Sprintf("data: %s\n\n", content(strings.Repeat("x", 80))), 100))
	})}
	c := newCaller(t, still(), `{"name": "chat", "limit_keys": [], "algorithm": "token_bucket_llm", "tokens_per_minute": 200, "streaming": {"buffer_tokens": 20}}`, httplimit.ModelTransportConfig{Base: base})
	res, err := c.Post("http://provider"+chatPath, "application/json", strings.NewReader(chatStream))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body := make([]byte, 64<<10)
	if n, err := io.ReadFull(res.Body, body); err != io.ErrUnexpectedEOF || !bytes.HasSuffix(body[:n], []byte("data: [DONE]\n\n")) {
		t.Errorf("%v, and the end %q", err, body[max(n-300, 0):n])
	}
	if s := <-c.settled; s.Charged < 200*bucket.Token || s.Charged > 250*bucket.Token {
		t.Errorf("charged %v tokens of 200", s.Charged)
	}
}

// failing is a base without a provider.
type failing struct{ err error }

func (f failing) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		r.Body.Close()
	}
	return nil, f.err
}

// closing notes that a body was closed.
type closing struct {
	io.Reader
	closed bool
}

func (c *closing) Close() error { c.closed = true; return nil }

func TestModelTransport_Errors(t *testing.T) {
	closed := newModelServer(t, func(http.ResponseWriter, *http.Request) {})
	closed.Close()
	remaining := func(c *caller) bucket.Tokens {
		d, err := c.limiter.Peek(t.Context(), mete.Request{Attributes: mete.Attrs{"ai:model": "m", "ai:prompt_tokens": "1"}})
		if err != nil {
			t.Fatal(err)
		}
		return d.Limits()[0].Remaining() / bucket.Token
	}
	for _, tt := range []struct {
		what string
		base http.RoundTripper
		left bucket.Tokens
	}{
		{"the provider cannot be reached", nil, 1000},
		{"the connection breaks", failing{io.ErrUnexpectedEOF}, 940},
	} {
		c := newCaller(t, still(), tokensPolicy, httplimit.ModelTransportConfig{Base: tt.base})
		body := &closing{Reader: strings.NewReader(chatRequest)}
		if _, err := c.Post(closed.URL+chatPath, "application/json", body); err == nil || !body.closed {
			t.Errorf("%s: error %v, body closed: %v", tt.what, err, body.closed)
		}
		if got := remaining(c); got != tt.left {
			t.Errorf("%s: %v tokens are left, want %v", tt.what, got, tt.left)
		}
	}
	c := newCaller(t, still(), tokensPolicy, httplimit.ModelTransportConfig{Base: failing{errors.New("sent")}})
	body := &closing{Reader: strings.NewReader(`{"model": "m"`)}
	if _, err := c.Post(closed.URL+chatPath, "application/json", body); err == nil || !strings.Contains(err.Error(), "cannot be counted") || !body.closed {
		t.Errorf("invalid JSON: error %v, body closed: %v", err, body.closed)
	}
	if got := remaining(c); got != 1000 {
		t.Errorf("after an invalid request, %v tokens are left", got)
	}
}

func TestModelTransport_Denied(t *testing.T) {
	server := newModelServer(t, func(w http.ResponseWriter, r *http.Request) { // all reserved tokens are used
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"id": "1", "choices": [{"index": 0, "message": {"role": "assistant", "content": "hello"}, "finish_reason": "length"}], "usage": {"prompt_tokens": 10, "completion_tokens": 50, "total_tokens": 60}}`)
	})
	const limited = `{"name": "chat", "limit_keys": ["custom:team"], "on_missing": "deny", "algorithm": "token_bucket_llm", "tokens_per_minute": 100, "max_prompt_tokens": 50}`
	type key struct{}
	c := newCaller(t, still(), limited, httplimit.ModelTransportConfig{
		MaxWait: -1,
		Attribute: func(r *http.Request, a policy.Attribute) (string, bool) {
			team, ok := r.Context().Value(key{}).(string)
			return team, ok && a.Name == "team"
		},
	})
	post := func(team, body string) error {
		ctx := t.Context()
		if team != "" {
			ctx = context.WithValue(ctx, key{}, team)
		}
		req, _ := http.NewRequestWithContext(ctx, http.MethodPost, server.URL+chatPath, strings.NewReader(body))
		res, err := c.Do(req)
		if err == nil {
			// A body that is not read to its end is settled in the background.
			_, err = io.Copy(io.Discard, res.Body)
			res.Body.Close()
		}
		return err
	}
	if err := post("a", chatRequest); err != nil {
		t.Fatal(err)
	}
	long := fmt.Sprintf(`{"model": "m", "max_tokens": 1, "messages": [{"role": "user", "content": %q}]}`, strings.Repeat("x", 400))
	for _, tt := range []struct {
		what, team, body, reason string
		retry                    time.Duration
		wraps                    error
	}{
		{"no tokens", "a", chatRequest, "tpm_exceeded", 12 * time.Second, mete.ErrDeadlineTooSoon},
		{"too long", "b", long, policy.ReasonPromptTokens, bucket.Never, mete.ErrRefused},
		{"no team", "", chatRequest, "missing_attribute", bucket.Never, mete.ErrRefused},
	} {
		err := post(tt.team, tt.body)
		denied, ok := errors.AsType[*httplimit.DeniedError](err)
		if !ok || denied.RetryAfter != tt.retry || denied.Provider || denied.Decision.Reason != tt.reason || denied.Decision.Rule != "chat" || !errors.Is(err, tt.wraps) || !strings.Contains(err.Error(), tt.reason) {
			t.Errorf("%s: %v (%+v)", tt.what, err, denied)
		}
	}
	if err := post("b", chatRequest); err != nil {
		t.Errorf("another team: %v", err)
	}
}

// A pause that a provider announces stops all processes until exactly its end, for the account and model of the request.
func TestModelTransport_Pause(t *testing.T) {
	for name, tt := range map[string]struct {
		status int
		fields []string
		want   time.Duration
	}{
		"Retry-After":          {429, []string{"Retry-After", "30"}, 30 * time.Second},
		"milliseconds":         {429, []string{"Retry-After", "2", "Retry-After-Ms", "1250"}, 1250 * time.Millisecond},
		"without a time":       {429, nil, time.Second},
		"reset of a rejection": {429, []string{"X-RateLimit-Remaining-Tokens", "0", "X-RateLimit-Reset-Tokens", "6m0s"}, 6 * time.Minute},
		"no tokens left":       {200, []string{"X-RateLimit-Remaining-Tokens", "0", "X-RateLimit-Reset-Tokens", "7.66s"}, 7660 * time.Millisecond},
		"no requests left": {200, []string{"Date", "Sun, 01 Mar 2026 12:00:00 GMT", "Anthropic-RateLimit-Requests-Remaining", "0",
			"Anthropic-RateLimit-Requests-Reset", "2026-03-01T12:00:20Z", "Anthropic-RateLimit-Tokens-Remaining", "5"}, 20 * time.Second},
		"one of 60 requests":           {200, []string{"X-RateLimit-Limit-Requests", "60", "X-RateLimit-Remaining-Requests", "0", "X-RateLimit-Reset-Requests", "1m0s"}, time.Second},
		"a limit that refills faster":  {200, []string{"X-RateLimit-Limit-Requests", "60", "X-RateLimit-Remaining-Requests", "0", "X-RateLimit-Reset-Requests", "30s"}, 500 * time.Millisecond},
		"60 of 6,000 tokens":           {200, []string{"X-RateLimit-Limit-Tokens", "6000", "X-RateLimit-Remaining-Tokens", "0", "X-RateLimit-Reset-Tokens", "1m0s"}, 600 * time.Millisecond},
		"a microsecond that has begun": {200, []string{"X-RateLimit-Limit-Tokens", "7000", "X-RateLimit-Remaining-Tokens", "0", "X-RateLimit-Reset-Tokens", "1m0s"}, 514286 * time.Microsecond},
		"the least pause":              {200, []string{"X-RateLimit-Limit-Requests", "60000", "X-RateLimit-Remaining-Requests", "0", "X-RateLimit-Reset-Requests", "1m0s"}, 100 * time.Millisecond},
		"a shorter reset":              {200, []string{"X-RateLimit-Limit-Requests", "60000", "X-RateLimit-Remaining-Requests", "0", "X-RateLimit-Reset-Requests", "20ms"}, 20 * time.Millisecond},
		"more than the whole limit":    {200, []string{"X-RateLimit-Limit-Tokens", "59", "X-RateLimit-Remaining-Tokens", "0", "X-RateLimit-Reset-Tokens", "1m0s"}, time.Minute},
		"the limit that takes longest": {200, []string{"X-RateLimit-Limit-Requests", "60", "X-RateLimit-Remaining-Requests", "0", "X-RateLimit-Reset-Requests", "1m0s",
			"X-RateLimit-Limit-Tokens", "600", "X-RateLimit-Remaining-Tokens", "0", "X-RateLimit-Reset-Tokens", "1m0s"}, 6 * time.Second},
		"Anthropic's input": {200, []string{"Date", "Sun, 01 Mar 2026 12:00:00 GMT", "Anthropic-RateLimit-Input-Tokens-Limit", "500",
			"Anthropic-RateLimit-Input-Tokens-Remaining", "0", "Anthropic-RateLimit-Input-Tokens-Reset", "2026-03-01T12:01:00Z"}, 1200 * time.Millisecond},
		"Anthropic's output": {200, []string{"Date", "Sun, 01 Mar 2026 12:00:00 GMT", "Anthropic-RateLimit-Output-Tokens-Limit", "500",
			"Anthropic-RateLimit-Output-Tokens-Remaining", "0", "Anthropic-RateLimit-Output-Tokens-Reset", "2026-03-01T12:01:00Z"}, 6 * time.Second},
		"a rejection without Retry-After": {429, []string{"X-RateLimit-Limit-Requests", "60", "X-RateLimit-Remaining-Requests", "0", "X-RateLimit-Reset-Requests", "6m0s"}, 6 * time.Second},
		"the least pause of a rejection":  {429, []string{"X-RateLimit-Limit-Requests", "600", "X-RateLimit-Remaining-Requests", "0", "X-RateLimit-Reset-Requests", "1m0s"}, time.Second},
		"Retry-After and a refill":        {429, []string{"Retry-After", "7", "X-RateLimit-Limit-Requests", "60", "X-RateLimit-Remaining-Requests", "0", "X-RateLimit-Reset-Requests", "1m0s"}, 7 * time.Second},
		"another dialect":                 {200, []string{"RateLimit-Limit", "60", "RateLimit-Remaining", "0", "RateLimit-Reset", "60"}, time.Minute},
		"a clock behind its reset":        {200, []string{"Date", "Sun, 01 Mar 2026 12:00:00 GMT", "Anthropic-RateLimit-Requests-Limit", "50", "Anthropic-RateLimit-Requests-Remaining", "0", "Anthropic-RateLimit-Requests-Reset", "2026-03-01T11:00:00Z"}, 0},
		"overloaded":                      {529, []string{"Retry-After", "5"}, 5 * time.Second},
		"unavailable":                     {503, []string{"Retry-After", "5"}, 5 * time.Second},
		"too long":                        {429, []string{"Retry-After", "999999"}, time.Hour},
		"tokens left":                     {200, []string{"X-RateLimit-Remaining-Tokens", "1", "X-RateLimit-Reset-Tokens", "6m0s"}, 0},
		"overloaded, no time":             {529, nil, 0},
		"an error of a client":            {400, []string{"Retry-After", "5"}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			var calls atomic.Int32
			server := newModelServer(t, func(w http.ResponseWriter, r *http.Request) {
				if calls.Add(1) == 1 {
					for i := 0; i < len(tt.fields); i += 2 {
						w.Header().Set(tt.fields[i], tt.fields[i+1])
					}
					w.WriteHeader(tt.status)
				}
				chatAnswer(w)
			})
			clock := storetest.NewClock()
			store := storetest.NewModel(clock.Now)
			config := httplimit.ModelTransportConfig{MaxWait: -1}
			one, other := newCaller(t, store, tokensPolicy, config), newCaller(t, store, tokensPolicy, config)
			if res, _, err := one.post(server.URL+chatPath, chatRequest); err != nil || res.StatusCode != tt.status {
				t.Fatal(res, err)
			}
			if tt.want > 0 {
				clock.Advance(tt.want.Microseconds() - 1)
				for _, c := range []*caller{one, other} {
					_, _, err := c.post(server.URL+chatPath, chatRequest)
					if denied, ok := errors.AsType[*httplimit.DeniedError](err); !ok || !denied.Provider || denied.RetryAfter != time.Microsecond {
						t.Errorf("a microsecond before the end: %v", err)
					}
				}
				if _, _, err := other.post(server.URL+chatPath, strings.Replace(chatRequest, `"m"`, `"n"`, 1)); err != nil {
					t.Errorf("another model: %v", err)
				}
				clock.Advance(1)
			}
			if _, _, err := other.post(server.URL+chatPath, chatRequest); err != nil {
				t.Errorf("after the end: %v", err)
			}
		})
	}
}

// Nothing is known about the tokens of a request to another path, so that the pause lasts until the limit of tokens is full.
func TestModelTransport_PauseOfAnUnknownSize(t *testing.T) {
	server := newModelServer(t, func(w http.ResponseWriter, r *http.Request) {
		for _, name := range []string{"Requests", "Tokens"} {
			w.Header().Set("X-RateLimit-Limit-"+name, "60")
			w.Header().Set("X-RateLimit-Remaining-"+name, "0")
			w.Header().Set("X-RateLimit-Reset-"+name, "1m0s")
		}
	})
	c := newCaller(t, still(), tokensPolicy, httplimit.ModelTransportConfig{MaxWait: -1})
	const embedding = `{"model": "m", "input": "text"}`
	if res, _, err := c.post(server.URL+"/v1/embeddings", embedding); err != nil || res.StatusCode != http.StatusOK {
		t.Fatal(res, err)
	}
	_, _, err := c.post(server.URL+"/v1/embeddings", embedding)
	if denied, ok := errors.AsType[*httplimit.DeniedError](err); !ok || !denied.Provider || denied.RetryAfter != time.Minute {
		t.Errorf("got %v, want a pause of a minute", err)
	}
}

// Rejections of many processes at the same time never add up: the longest pause counts.
func TestModelTransport_PausesDoNotAddUp(t *testing.T) {
	const clients = 16
	var arrived sync.WaitGroup
	arrived.Add(clients)
	var calls atomic.Int32
	server := newModelServer(t, func(w http.ResponseWriter, r *http.Request) {
		n := calls.Add(1)
		if n > clients {
			chatAnswer(w)
			return
		}
		arrived.Done()
		arrived.Wait()
		w.Header().Set("Retry-After", fmt.Sprint(n))
		w.WriteHeader(http.StatusTooManyRequests)
	})
	clock := storetest.NewClock()
	store, err := memstore.New(memstore.Config{Now: clock.Now})
	if err != nil {
		t.Fatal(err)
	}
	var group sync.WaitGroup
	for range clients {
		c := newCaller(t, store, tokensPolicy, httplimit.ModelTransportConfig{MaxWait: -1})
		group.Go(func() {
			if res, _, err := c.post(server.URL+chatPath, chatRequest); err != nil || res.StatusCode != http.StatusTooManyRequests {
				t.Errorf("%v (%v)", res, err)
			}
		})
	}
	group.Wait()
	c := newCaller(t, store, tokensPolicy, httplimit.ModelTransportConfig{MaxWait: -1})
	_, _, err = c.post(server.URL+chatPath, chatRequest)
	if denied, ok := errors.AsType[*httplimit.DeniedError](err); !ok || denied.RetryAfter != clients*time.Second {
		t.Errorf("got %v, want a pause of %d s", err, clients)
	}
}

// Requests wait for the end of a pause, for tokens, and for a slot.
func TestModelTransport_Waits(t *testing.T) {
	const slots = `{"rules": [{"name": "chat", "limit_keys": [], "rate": "1000/1m", "cost_source": "ai:tokens"},
		{"name": "slots", "limit_keys": [], "group": "slots", "algorithm": "concurrency", "max": 1, "lease": "10m"}]}`
	synctest.Test(t, func(t *testing.T) {
		store := storetest.NewModel(func() bucket.Instant { return bucket.At(time.Now()) })
		var calls int
		base := inProcess{handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if calls++; calls == 1 {
				w.Header().Set("Retry-After", "20")
				w.WriteHeader(http.StatusTooManyRequests)
				return
			}
			chatAnswer(w)
		})}
		one := newCaller(t, store, slots, httplimit.ModelTransportConfig{Base: base})
		other := newCaller(t, store, slots, httplimit.ModelTransportConfig{Base: base})
		begin := time.Now()
		if res, _, err := one.post("http://provider"+chatPath, chatRequest); err != nil || res.StatusCode != http.StatusTooManyRequests {
			t.Fatal(err)
		}
		res, err := other.Post("http://provider"+chatPath, "application/json", strings.NewReader(chatRequest))
		if took := time.Since(begin); err != nil || took < 20*time.Second || took > 21*time.Second {
			t.Fatalf("the other process waited %v (%v), want 20 to 21 s", took, err)
		}
		begin = time.Now()
		time.AfterFunc(5*time.Second, func() { io.Copy(io.Discard, res.Body); res.Body.Close() })
		if _, _, err := one.post("http://provider"+chatPath, chatRequest); err != nil || time.Since(begin) > 5200*time.Millisecond {
			t.Errorf("waited %v for a slot (%v), want 5 s", time.Since(begin), err)
		}
		begin = time.Now()
		if _, err := one.limiter.Charge(t.Context(), mete.Request{Attributes: mete.Attrs{"ai:model": "m", "ai:prompt_tokens": "1"}, Cost: 1100}); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		req, _ := http.NewRequestWithContext(ctx, http.MethodPost, "http://provider"+chatPath, strings.NewReader(chatRequest))
		if _, err := other.Do(req); !errors.Is(err, mete.ErrDeadlineTooSoon) || time.Since(begin) > 0 {
			t.Errorf("with too short a deadline: %v after %v", err, time.Since(begin))
		}
		if _, _, err := other.post("http://provider"+chatPath, chatRequest); err != nil || time.Since(begin) < 5*time.Second {
			t.Errorf("waited %v for tokens (%v)", time.Since(begin), err)
		}
	})
}

// A pause that becomes longer while a request waits for it holds the request.
func TestModelTransport_LongerPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := storetest.NewModel(func() bucket.Instant { return bucket.At(time.Now()) })
		begin := time.Now()
		var mu sync.Mutex // guards times
		var times []time.Duration
		base := inProcess{handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			mu.Lock()
			defer mu.Unlock()
			if times = append(times, time.Since(begin)); len(times) < 3 {
				w.Header().Set("Retry-After", "10")
				w.WriteHeader(http.StatusTooManyRequests)
				return
			}
			chatAnswer(w)
		}), oneWay: 2 * time.Second}
		c := newCaller(t, store, tokensPolicy, httplimit.ModelTransportConfig{Base: base})
		go c.post("http://provider"+chatPath, chatRequest)
		time.Sleep(time.Second)
		go c.post("http://provider"+chatPath, chatRequest) // both are on their way
		time.Sleep(3500 * time.Millisecond)                // the first rejection pauses until 14, the second until 15
		if _, _, err := c.post("http://provider"+chatPath, chatRequest); err != nil {
			t.Fatal(err)
		}
		if len(times) != 3 || times[2] < 17*time.Second || times[2] > 19*time.Second {
			t.Errorf("requests at %v", times)
		}
	})
}

// A limiter without a policy only obeys the provider.
func TestModelTransport_WithoutPolicy(t *testing.T) {
	server := newModelServer(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Retry-After", "5")
		w.WriteHeader(http.StatusTooManyRequests)
	})
	limiter, err := mete.New(still(), nil, mete.Config{})
	if err != nil {
		t.Fatal(err)
	}
	transport, err := httplimit.NewModelTransport(limiter, httplimit.ModelTransportConfig{MaxWait: -1})
	if err != nil {
		t.Fatal(err)
	}
	c := &http.Client{Transport: transport}
	for i := range 2 {
		res, err := c.Get(server.URL + "/v1/models") // it has no model
		if i == 0 && err == nil {
			res.Body.Close()
			continue
		}
		if denied, ok := errors.AsType[*httplimit.DeniedError](err); !ok || i == 0 || denied.RetryAfter != 5*time.Second {
			t.Errorf("request %d: %v", i, err)
		}
	}
}

// Two processes have many streams and close some of them early. They never spend more than the limit plus the overrun of their
// running streams. The bucket has lost exactly what the requests were charged.
func TestModelTransport_Parallel(t *testing.T) {
	const budget, streams, overrun = 2000, 24, 80 // each check comes after 20 tokens and at most three events
	server := newModelServer(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for range 6 {
			chunk(w, content(strings.Repeat("x", 80)))
		}
		chunk(w, "[DONE]")
	})
	clock := storetest.NewClock()
	store, err := memstore.New(memstore.Config{Now: clock.Now})
	if err != nil {
		t.Fatal(err)
	}
	var group sync.WaitGroup
	var sent atomic.Int64
	var callers []*caller
	for range 2 {
		c := newCaller(t, store, fmt.Sprintf(`{"name": "chat", "limit_keys": [], "deadline": "10s", "algorithm": "token_bucket_llm", "tokens_per_minute": %d, "streaming": {"buffer_tokens": 20}}`, budget),
			httplimit.ModelTransportConfig{MaxWait: -1})
		callers = append(callers, c)
		for i := range streams / 2 {
			group.Go(func() {
				for range 3 {
					res, err := c.Post(server.URL+chatPath, "application/json", strings.NewReader(chatStream))
					if _, denied := errors.AsType[*httplimit.DeniedError](err); denied {
						return
					}
					if err != nil {
						t.Error(err)
						return
					}
					sent.Add(1)
					if i%3 == 0 {
						io.ReadFull(res.Body, make([]byte, 300))
					} else {
						io.Copy(io.Discard, res.Body)
					}
					res.Body.Close()
				}
			})
		}
	}
	group.Wait()
	charged, settled := bucket.Tokens(0), int64(0)
	for ; settled < sent.Load(); settled++ { // the rest of a closed stream is read in the background
		select {
		case s := <-callers[0].settled:
			charged += s.Charged
		case s := <-callers[1].settled:
			charged += s.Charged
		}
	}
	settled += int64(len(callers[0].settled) + len(callers[1].settled))
	if settled != sent.Load() || charged > (budget+streams*overrun)*bucket.Token {
		t.Errorf("%d of %d requests are settled, charged %v of %d", settled, sent.Load(), charged, budget)
	}
	d, err := callers[0].limiter.Take(t.Context(), mete.Request{Attributes: mete.Attrs{"ai:model": "m"}, Cost: 1})
	if err != nil {
		t.Fatal(err)
	}
	if over := charged - budget*bucket.Token; over >= 0 && d.RetryAfter < time.Duration(over/bucket.Token)*time.Minute/budget ||
		over < 0 && d.Limits()[0].Remaining() != -over-bucket.Token {
		t.Errorf("charged %v of %d, and the bucket has %v, wait %v", charged, budget, d.Limits()[0].Remaining(), d.RetryAfter)
	}
}
