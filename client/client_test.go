// SPDX-License-Identifier: Apache-2.0

package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/api"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/client"
	"github.com/metehq/mete/httpapi"
	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/store"
	"github.com/metehq/mete/storetest"
)

// newServer returns a client of a server with bursts of 2 and 10 requests per second for each key, and a stopped
// clock.
func newServer(t *testing.T) *client.Client {
	t.Helper()
	return serverOf(t, httpapi.Config{Admin: true})
}

func serverOf(t *testing.T, config httpapi.Config) *client.Client {
	t.Helper()
	m, err := policy.Load([]byte(`{"rules": [{"name": "free", "limit_keys": ["header:x-api-key"], "algorithm": "token_bucket",
		"algorithm_config": {"rps": 10, "burst": 2}}]}`), policy.Options{})
	if err != nil {
		t.Fatal(err)
	}
	frozen := func() bucket.Instant { return 1_700_000_000_000_000 }
	lim, err := mete.New(storetest.NewModel(frozen), m, mete.Config{})
	if err != nil {
		t.Fatal(err)
	}
	h, err := httpapi.New(lim, config)
	if err != nil {
		t.Fatal(err)
	}
	return newClient(t, h)
}

func newClient(t *testing.T, h http.Handler) *client.Client {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	c, err := client.New(server.URL, server.Client())
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func request(cost bucket.Tokens) client.Request {
	return client.Request{Attributes: map[string]string{"header:x-api-key": "k1"}, Cost: float64(mete.TokensOf(cost))}
}

// answer is a decision by the rule free, about its only limit.
func answer(allowed bool, remaining int64, retry, full time.Duration) client.Decision {
	d := client.Decision{Allowed: allowed, Rule: "free", RetryAfter: api.Seconds(retry), Limits: []api.Limit{
		{Rule: "free", Limit: "free", Remaining: remaining, RetryAfter: api.Seconds(retry), FullAfter: api.Seconds(full)}}}
	if !allowed {
		d.Reason = "token_bucket_exceeded"
	}
	return d
}

func TestClient_AsksARealServer(t *testing.T) {
	c, ctx := newServer(t), context.Background()
	same := func(what string, got client.Decision, err error, want client.Decision) {
		t.Helper()
		g, _ := json.Marshal(got)
		if w, _ := json.Marshal(want); err != nil || string(g) != string(w) {
			t.Errorf("%s: got %s and error %v, want %s", what, g, err, w)
		}
	}
	d, err := c.Take(ctx, request(0))
	same("take", d, err, answer(true, 1, 0, 100*time.Millisecond))
	d, err = c.Take(ctx, request(750))
	same("take 0.75", d, err, answer(true, 0, 0, 175*time.Millisecond))
	d, err = c.Take(ctx, request(251))
	same("take 0.251 of 0.25", d, err, answer(false, 0, 100*time.Microsecond, 175*time.Millisecond))
	d, err = c.Peek(ctx, request(2001))
	same("peek 2.001 of 2", d, err, answer(false, 0, bucket.Never, 175*time.Millisecond))
	if err := c.Refund(ctx, request(1000)); err != nil {
		t.Errorf("refund: %v", err)
	}
	d, err = c.Peek(ctx, request(1250))
	same("peek after a refund", d, err, answer(true, 1, 0, 75*time.Millisecond))
	if err := c.Reset(ctx, request(0)); err != nil {
		t.Errorf("reset: %v", err)
	}
	d, err = c.Take(ctx, request(2000))
	same("take all after a reset", d, err, answer(true, 0, 0, 200*time.Millisecond))

	reserve := request(500)
	reserve.MaxWait = 50 * time.Millisecond
	d, err = c.Take(ctx, reserve)
	want := answer(true, 0, 0, 250*time.Millisecond)
	want.Wait = api.Seconds(50 * time.Millisecond)
	want.Limits[0].Owed = 500
	same("reserve", d, err, want)
}

// A take that is repeated because its answer was lost is charged once.
func TestClient_RepeatsUnderAnID(t *testing.T) {
	ctx, c := context.Background(), newServer(t)
	req := request(1000)
	req.ID = "7f3a"
	for attempt := range 3 {
		if d, err := c.Take(ctx, req); err != nil || !d.Allowed || d.Limits[0].Remaining != 1 {
			t.Fatalf("attempt %d: %+v and error %v, want 1 of 2 left each time", attempt, d, err)
		}
	}
	req.ID = "7f3b"
	if d, err := c.Take(ctx, req); err != nil || !d.Allowed || d.Limits[0].Remaining != 0 {
		t.Errorf("another request: %+v and error %v, want none left", d, err)
	}
}

func TestClient_AsksTheWrongAddress(t *testing.T) {
	c := serverOf(t, httpapi.Config{})
	for op, ask := range map[string]func(context.Context, client.Request) error{"refund": c.Refund, "reset": c.Reset} {
		err := ask(context.Background(), request(1000))
		var e *client.Error
		if !errors.As(err, &e) || e.Kind != client.KindRefused || e.Status != http.StatusNotFound || !strings.Contains(err.Error(), "admin address") {
			t.Errorf("%s where it is not served: got error %v, want a refusal that says so", op, err)
		}
	}
}

func TestClient_NoAttributes(t *testing.T) {
	if d, err := newServer(t).Take(context.Background(), client.Request{}); err != nil || !d.Allowed || len(d.Limits) != 0 {
		t.Errorf("got %+v and error %v, want allowed under no limit", d, err)
	}
}

// respond returns a handler with a fixed response.
func say(status int, kind, body string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", kind)
		w.WriteHeader(status)
		io.WriteString(w, body)
	})
}

func TestClient_Errors(t *testing.T) {
	const decision = `{"allowed":true,"rule":"","reason":"","retry_after":0,"degraded":false,"limits":[]}`
	for _, tt := range []struct {
		name  string
		h     http.Handler
		kind  client.Kind
		spent store.Spending
		want  string
	}{
		{"problem", say(400, "application/problem+json", `{"title":"Bad Request","status":400,"detail":"no","pointer":"/cost"}`),
			client.KindRefused, mete.NotSpent, "client: take: refused: 400 Bad Request: /cost: no"},
		{"store down", say(503, "application/problem+json", `{"title":"Service Unavailable","status":503,"detail":"later"}`),
			client.KindUnavailable, mete.MaybeSpent, "client: take: unavailable: 503 Service Unavailable: later"},
		{"another server", say(200, "text/html", "<html>"), client.KindInvalidResponse, mete.MaybeSpent, "not a mete server"},
		{"not a decision", say(200, "application/json", `{"ok":true}`), client.KindInvalidResponse, mete.MaybeSpent, "not a decision"},
		{"not JSON", say(200, "application/json", `{"allowed":`), client.KindInvalidResponse, mete.MaybeSpent, "cannot be parsed"},
		{"wait is negative", say(429, "application/json", `{"allowed":false,"retry_after":-1}`), client.KindInvalidResponse, mete.MaybeSpent, "cannot be parsed"},
		{"without an end", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			for r.Context().Err() == nil {
				if _, err := io.WriteString(w, strings.Repeat(" ", 1<<16)); err != nil {
					return
				}
			}
		}), client.KindInvalidResponse, mete.MaybeSpent, "longer than"},
		{"broken off", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", "1000")
			io.WriteString(w, decision)
		}), client.KindUnreachable, mete.MaybeSpent, "unexpected EOF"},
	} {
		_, err := newClient(t, tt.h).Take(context.Background(), client.Request{})
		var e *client.Error
		if !errors.As(err, &e) || e.Kind != tt.kind || e.Spent() != tt.spent || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got error %v, want a %v one with %q", tt.name, err, tt.kind, tt.want)
		}
	}
}

func TestClient_DegradedDenialIsADecision(t *testing.T) {
	c := newClient(t, say(503, "application/json", `{"allowed":false,"rule":"free","reason":"store_error","retry_after":0,"degraded":true,"failure":"timeout","limits":[]}`))
	if d, err := c.Take(context.Background(), client.Request{}); err != nil || d.Allowed || !d.Degraded || d.Failure != string(store.FailureTimeout) {
		t.Errorf("got %+v and error %v, want a degraded denial", d, err)
	}
}

func TestClient_Unreachable(t *testing.T) {
	server := httptest.NewServer(nil)
	server.Close()
	c, err := client.New(server.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.Peek(context.Background(), client.Request{})
	var e *client.Error
	if !errors.As(err, &e) || e.Kind != client.KindUnreachable || e.Spent() != mete.NotSpent || e.Status != 0 {
		t.Errorf("nothing listens: got error %v, want an unreachable one with nothing spent", err)
	}
}

func TestClient_ContextEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	c := newClient(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		cancel()
		<-r.Context().Done()
	}))
	_, err := c.Take(ctx, client.Request{})
	var e *client.Error
	if !errors.Is(err, context.Canceled) || !errors.As(err, &e) || e.Spent() != mete.MaybeSpent {
		t.Errorf("got error %v, want %v, perhaps spent", err, context.Canceled)
	}
}

func TestClient_RefusesNegatives(t *testing.T) {
	c := newServer(t)
	for _, req := range []client.Request{{Cost: -1}, {MaxWait: -1}} {
		_, err := c.Take(context.Background(), req)
		var e *client.Error
		if !errors.As(err, &e) || e.Kind != client.KindRefused || e.Spent() != mete.NotSpent {
			t.Errorf("%+v: got error %v, want a refused one", req, err)
		}
	}
}

func TestNew_RefusesBadURLs(t *testing.T) {
	for _, text := range []string{"", "127.0.0.1:8080", "localhost:8080", "ftp://x", "http://", "/v1", "http://x?q=1", "http://x#y", "http://u:secret@x?q", "http://[::1", "://u:secret@x"} {
		if _, err := client.New(text, nil); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: got error %v, want one without secrets", text, err)
		}
	}
	for _, text := range []string{"http://127.0.0.1:8080", "https://limits.example/mete/"} {
		if _, err := client.New(text, nil); err != nil {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// A denial with any status is a decision: 200, or the 429 and 503 of ?status=429 and of older
// servers.
func TestClient_ReadsEveryDenial(t *testing.T) {
	const body = `{"allowed":false,"rule":"free","reason":"token_bucket_exceeded","retry_after":0.25,"degraded":false,"limits":[]}`
	for _, status := range []int{200, 429, 503} {
		d, err := newClient(t, say(status, "application/json", body)).Take(t.Context(), request(0))
		if err != nil || d.Allowed || d.Rule != "free" || d.RetryAfter.Duration() != 250*time.Millisecond {
			t.Errorf("status %d: got %+v and error %v, want a denial for 250ms", status, d, err)
		}
	}
}

// A cost that is no number of thousandths is refused before it is sent. Sums of decimal
// fractions are near enough.
func TestRequest_Cost(t *testing.T) {
	for cost, want := range map[float64]string{0.1 + 0.2: `"cost":0.3`, 3: `"cost":3}`, 1e6: `"cost":1000000}`, 9007199254740.99: `"cost":9007199254740.99`} {
		if text, err := json.Marshal(client.Request{Cost: cost}); err != nil || !strings.Contains(string(text), want) {
			t.Errorf("%v: got %s and error %v, want %s", cost, text, err, want)
		}
	}
	for _, cost := range []float64{0.0001, 1.2345, -1, math.NaN(), math.Inf(1), 1e16} {
		if text, err := json.Marshal(client.Request{Cost: cost}); err == nil {
			t.Errorf("%v: got %s, want an error", cost, text)
		}
	}
}
