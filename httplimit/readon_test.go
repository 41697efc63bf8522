// SPDX-License-Identifier: Apache-2.0

package httplimit_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/httplimit"
	"github.com/metehq/mete/internal/testkit"
	"github.com/metehq/mete/policy"
)

// thoughtful is the last event of a stream with 900 tokens of hidden reasoning.
const (
	thoughtful = `{"id":"1","object":"chat.completion.chunk","created":1,"model":"m","choices":[],"usage":{"prompt_tokens":13,"completion_tokens":907,"total_tokens":920,"completion_tokens_details":{"reasoning_tokens":900}}}`

	// unbounded is a request without a maximum, which reserves 10 + 70 tokens.
	unbounded       = `{"model": "m", "stream": true, "messages": [{"role": "user", "content": "0123456789012345678901234567890123456789"}]}`
	unboundedPolicy = `{"rules": [{"name": "chat", "limit_keys": [], "match": {"ai:model": "*"}, "rate": "10000/1m", "cost_source": "ai:tokens", "default_max_completion": 70}]}`
)

// leave sends a request and hangs up when begun is closed.
func (p *provider) leave(body string, begun <-chan struct{}) {
	p.t.Helper()
	ctx, cancel := context.WithCancel(p.t.Context())
	defer cancel()
	go func() { <-begun; cancel() }()
	req, _ := http.NewRequestWithContext(ctx, http.MethodPost, p.URL+chatPath, strings.NewReader(body))
	if res, err := http.DefaultClient.Do(req); err == nil {
		<-ctx.Done()
		res.Body.Close()
	}
}

func (p *provider) wantNoReadOn() {
	p.t.Helper()
	testkit.Eventually(p.t, "no call of a client that is gone", func() error {
		if n := p.limits.CountReadOns(); n > 0 {
			return fmt.Errorf("there are %d", n)
		}
		return nil
	})
}

// A client that hangs up before the last event pays for the hidden reasoning that the event reports.
func TestHangUp_PaysTheReportedUsage(t *testing.T) {
	for _, tt := range []struct {
		when, body string
		handler    func(w http.ResponseWriter, r *http.Request, begun chan struct{})
		charged    bucket.Tokens
	}{
		{"in a stream", chatStream, func(w http.ResponseWriter, r *http.Request, begun chan struct{}) {
			w.Header().Set("Content-Type", "text/event-stream")
			chunk(w, content("hello"))
			close(begun)
			<-clientOf(r).Done()
			for range 3 {
				chunk(w, content("hello"))
			}
			chunk(w, thoughtful)
			if r.Context().Err() != nil {
				t.Error("the work ended with the client")
			}
		}, 920},
		{"before the first event", chatStream, func(w http.ResponseWriter, r *http.Request, begun chan struct{}) {
			close(begun)
			<-clientOf(r).Done()
			w.Header().Set("Content-Type", "text/event-stream")
			chunk(w, thoughtful)
		}, 920},
		{"before the answer", chatRequest, func(w http.ResponseWriter, r *http.Request, begun chan struct{}) {
			close(begun)
			<-clientOf(r).Done()
			chatAnswer(w)
		}, 20},
		{"before an error", chatRequest, func(w http.ResponseWriter, r *http.Request, begun chan struct{}) {
			close(begun)
			<-clientOf(r).Done()
			http.Error(w, "overloaded", 529)
		}, 0},
		{"in a stream without usage", chatStream, func(w http.ResponseWriter, r *http.Request, begun chan struct{}) {
			w.Header().Set("Content-Type", "text/event-stream")
			chunk(w, content(strings.Repeat("x", 80)))
			close(begun)
			<-clientOf(r).Done()
			chunk(w, content(strings.Repeat("x", 40)))
			chunk(w, "[DONE]")
		}, 40},
	} {
		t.Run(tt.when, func(t *testing.T) {
			begun := make(chan struct{})
			p := newProvider(t, tokensPolicy, func(w http.ResponseWriter, r *http.Request) { tt.handler(w, r, begun) })
			p.leave(tt.body, begun)
			p.wantCharge(60, tt.charged)
			p.wantNoReadOn()
		})
	}
}

// If the usage is known, the work ends with the client.
func TestHangUp_EndsWithAKnownUsage(t *testing.T) {
	begun := make(chan struct{})
	p := newProvider(t, tokensPolicy, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		chunk(w, strings.Replace(content("hello"), `"finish_reason":null`, `"finish_reason":"stop"`, 1))
		chunk(w, thoughtful)
		close(begun)
		<-r.Context().Done()
	})
	p.leave(chatStream, begun)
	p.wantCharge(60, 920)
	p.wantNoReadOn()
}

// If a bound ends the rest of the response, the request pays at least what it has reserved, and the maximum that it named.
func TestHangUp_Bounds(t *testing.T) {
	endless := func(w http.ResponseWriter, r *http.Request) {
		for r.Context().Err() == nil {
			if _, err := fmt.Fprintf(w, ": %s\n\n", strings.Repeat("x", 1000)); err != nil {
				return
			}
		}
	}
	for _, tt := range []struct {
		bound, body       string
		set               func(*httplimit.Middleware)
		reserved, charged bucket.Tokens
	}{
		{"bytes", unbounded, func(m *httplimit.Middleware) { m.SetReadOn(time.Hour, 10_000, 1) }, 80, 80},
		{"calls", unbounded, func(m *httplimit.Middleware) { m.SetReadOn(time.Hour, httplimit.ReadOnBytes, 0) }, 80, 80},
		{"time", unbounded, func(m *httplimit.Middleware) { m.SetReadOn(0, httplimit.ReadOnBytes, 1) }, 80, 80},
		{"a named maximum", strings.Replace(unbounded, `"stream"`, `"max_tokens": 300, "stream"`, 1), func(m *httplimit.Middleware) { m.SetReadOn(0, httplimit.ReadOnBytes, 1) }, 80, 310},
		{"more text than reserved", strings.Replace(unbounded, `"stream"`, `"max_tokens": 2, "stream"`, 1), func(m *httplimit.Middleware) { m.SetReadOn(0, httplimit.ReadOnBytes, 1) }, 12, 40},
	} {
		t.Run(tt.bound, func(t *testing.T) {
			begun := make(chan struct{})
			p := newProvider(t, strings.Replace(unboundedPolicy, `"default_max`, `"max_completion_tokens": 70, "default_max`, 1), func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "text/event-stream")
				chunk(w, content(strings.Repeat("x", 120)))
				close(begun)
				<-clientOf(r).Done()
				endless(w, r)
			})
			tt.set(p.limits)
			p.leave(tt.body, begun)
			p.wantCharge(tt.reserved, tt.charged)
			p.wantNoReadOn()
		})
	}
	t.Run("before the header", func(t *testing.T) {
		begun := make(chan struct{})
		p := newProvider(t, unboundedPolicy, func(w http.ResponseWriter, r *http.Request) {
			close(begun)
			<-r.Context().Done()
			w.WriteHeader(http.StatusBadGateway)
		})
		p.limits.SetReadOn(0, 1, 1)
		p.leave(unbounded, begun)
		p.wantCharge(80, 80)
	})
}

// No work begins for a client that is gone before, for example during a delay.
func TestHangUp_BeforeTheWork(t *testing.T) {
	p := newProvider(t, tokensPolicy, nil)
	ctx, cancel := context.WithCancel(t.Context())
	r := httptest.NewRequestWithContext(ctx, http.MethodPost, chatPath, strings.NewReader(chatStream))
	admission, ok := p.limits.Admit(httptest.NewRecorder(), r)
	if !ok {
		t.Fatal("the request is denied")
	}
	cancel()
	admission.Serve(httptest.NewRecorder(), r, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.Context().Err() == nil {
			t.Error("the work does not end")
		}
	}))
	p.wantCharge(60, 60)
}

// The time of the rest is bounded, no goroutine stays, and the slot of the request is taken until the end.
func TestHangUp_Time(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, err := policy.Load([]byte(`{"rules": [
			{"name": "chat", "limit_keys": [], "match": {"ai:model": "*"}, "rate": "10000/1m", "cost_source": "ai:tokens", "default_max_completion": 70},
			{"name": "streams", "group": "slots", "limit_keys": [], "algorithm": "concurrency", "max": 1, "lease": "20m"}]}`), policy.Options{})
		if err != nil {
			t.Fatal(err)
		}
		settled := make(chan bucket.Tokens, 1)
		limiter, err := mete.New(still(), m, mete.Config{OnSettlement: func(_ context.Context, s *policy.Settlement) { settled <- s.Charged }})
		if err != nil {
			t.Fatal(err)
		}
		limits, err := httplimit.New(limiter, httplimit.Config{})
		if err != nil {
			t.Fatal(err)
		}
		handler := limits.Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			chunk(w, content("hello"))
			<-r.Context().Done()
		}))
		ask := func(ctx context.Context) int {
			w := httptest.NewRecorder()
			r := httptest.NewRequestWithContext(ctx, http.MethodPost, chatPath, strings.NewReader(unbounded))
			handler.ServeHTTP(w, r)
			return w.Code
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { ask(ctx); close(done) }()
		synctest.Wait()
		cancel()
		synctest.Wait()
		began := time.Now()
		if got := ask(t.Context()); got != http.StatusTooManyRequests {
			t.Errorf("status %d while the slot is taken", got)
		}
		<-done
		if after := time.Since(began); after != httplimit.ReadOnTime || <-settled != 80*bucket.Token || limits.CountReadOns() != 0 {
			t.Errorf("ended after %v, with %d calls", after, limits.CountReadOns())
		}
	})
}

// A shutdown waits for the rest of responses until its context ends. Later clients that hang up are not read on.
func TestHangUp_Drain(t *testing.T) {
	begun, finish := make(chan struct{}), make(chan struct{})
	p := newProvider(t, unboundedPolicy, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		chunk(w, content("hello"))
		begun <- struct{}{}
		select {
		case <-finish:
			chunk(w, thoughtful)
		case <-r.Context().Done():
		}
	})
	away := func(n int) {
		testkit.Eventually(t, "the client is gone", func() error {
			if got := p.limits.CountReadOns(); got != n {
				return fmt.Errorf("%d calls, want %d", got, n)
			}
			return nil
		})
	}
	p.leave(unbounded, begun)
	away(1)
	go func() { finish <- struct{}{} }()
	p.limits.Drain(t.Context())
	p.wantCharge(80, 920)
	p.leave(unbounded, begun)
	p.wantCharge(80, 80)

	p = newProvider(t, unboundedPolicy, func(w http.ResponseWriter, r *http.Request) {
		close(begun)
		<-r.Context().Done()
	})
	p.leave(unbounded, begun)
	away(1)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	p.limits.Drain(ctx)
	p.wantCharge(80, 80)
}
