// SPDX-License-Identifier: Apache-2.0

package ratelimitfields_test

import (
	"encoding/json"
	"math"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strconv"
	"testing"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/ratelimitfields"
	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/store"
)

func TestDeny(t *testing.T) {
	free := newLimit(t, "free", "20", "10/1s")
	slow := newLimit(t, `the "slow" one`, "1", "1/1m")
	type m = map[string]any
	for _, tt := range []struct {
		what     string
		decision *mete.Decision
		want     m
	}{
		{"too early", decision(status(free, 0, bucket.Token)), m{
			"type": "https://iana.org/assignments/http-problem-types#quota-exceeded", "title": "Quota exceeded", "status": 429.0,
			"retry_after": 0.1, "detail": `Limit "free" is exceeded. Try again in 1 second.`, "violated-policies": []any{"free"},
		}},
		{"too early for several", decision(status(free, 0, bucket.Token), status(slow, 0, bucket.Token),
			status(newLimit(t, "day", "5", "1/1d"), bucket.Token, bucket.Token)), m{
			"type": "https://iana.org/assignments/http-problem-types#quota-exceeded", "title": "Quota exceeded", "status": 429.0,
			"retry_after": 60.0, "detail": `Limit "the \"slow\" one" is exceeded. Try again in 60 seconds.`, "violated-policies": []any{"free", `the "slow" one`},
		}},
		{"never", decision(status(free, 20*bucket.Token, 21*bucket.Token)), m{
			"type": "https://iana.org/assignments/http-problem-types#quota-exceeded", "title": "Quota exceeded", "status": 429.0,
			"retry_after": nil, "detail": `The request costs more than limit "free" can ever allow. Waiting does not help.`, "violated-policies": []any{"free"},
		}},
		{"missing attribute", &mete.Decision{Rule: "keyed", Reason: mete.ReasonMissingAttribute, RetryAfter: bucket.Never}, m{
			"type": "about:blank", "title": "Forbidden", "status": 403.0, "retry_after": nil, "detail": `The request has no value for an attribute that rule "keyed" requires.`,
		}},
		{"blocked", &mete.Decision{Reason: mete.ReasonBlocked, RetryAfter: time.Hour, Override: &policy.Override{ID: "o", Reason: "secret", Author: "a"}}, m{
			"type": "https://iana.org/assignments/http-problem-types#abnormal-usage-detected", "title": "Blocked", "status": 429.0,
			"retry_after": 3600.0, "detail": "Requests from this client are temporarily blocked. Try again in 3600 seconds.",
		}},
		{"blocked for good", &mete.Decision{Reason: mete.ReasonBlocked, RetryAfter: bucket.Never}, m{
			"type": "https://iana.org/assignments/http-problem-types#abnormal-usage-detected", "title": "Blocked", "status": 429.0,
			"retry_after": nil, "detail": "Requests from this client are temporarily blocked.",
		}},
		{"closed", &mete.Decision{Rule: "free", Reason: mete.ReasonStoreError, Degraded: true}, m{
			"type": "https://iana.org/assignments/http-problem-types#temporary-reduced-capacity", "title": "Temporarily reduced capacity",
			"status": 503.0, "retry_after": 1.0, "detail": "The rate limit could not be checked. Try again in 1 second.", "violated-policies": []any{"free"},
		}},
		{"used up locally", degraded(decision(status(free, 0, bucket.Token))), m{
			"type": "https://iana.org/assignments/http-problem-types#quota-exceeded", "title": "Quota exceeded", "status": 429.0,
			"retry_after": 0.1, "detail": `Limit "free" is exceeded. Try again in 1 second.`, "violated-policies": []any{"free"}, "degraded": true,
		}},
	} {
		w := newWriter(t, ratelimitfields.Config{DisableJitter: true})
		for _, method := range []string{"GET", "HEAD", "POST"} {
			rec := httptest.NewRecorder()
			w.Deny(rec, httptest.NewRequest(method, "/", nil), tt.decision, "client")
			if got := rec.Code; float64(got) != tt.want["status"] || got != ratelimitfields.Status(tt.decision) {
				t.Errorf("%s, %s: got status %d, want %v", tt.what, method, got, tt.want["status"])
			}
			if got, want := rec.Header().Get("Content-Type"), "application/problem+json"; got != want {
				t.Errorf("%s, %s: got content type %q, want %q", tt.what, method, got, want)
			}
			if got := rec.Header().Get("Cache-Control"); got != "no-store" {
				t.Errorf("%s, %s: got Cache-Control %q, want no-store", tt.what, method, got)
			}
			if method == "HEAD" {
				if rec.Body.Len() > 0 {
					t.Errorf("%s: HEAD got a body: %s", tt.what, rec.Body)
				}
				continue
			}
			var got m
			if err := json.Unmarshal(rec.Body.Bytes(), &got); err != nil || !reflect.DeepEqual(got, tt.want) {
				t.Errorf("%s, %s: got %s (%v), want %v", tt.what, method, rec.Body, err, tt.want)
			}
		}
	}
}

// degraded marks a decision that local buckets made.
func degraded(d *mete.Decision) *mete.Decision {
	d.Degraded, d.Failure = true, store.FailureTimeout
	return d
}

// The buckets that decided are shown, whichever they are.
func TestHeader_Local(t *testing.T) {
	w := newWriter(t, ratelimitfields.Config{DisableJitter: true})
	h := http.Header{}
	w.Header(h, degraded(decision(status(newLimit(t, "free", "20", "10/1s"), 0, bucket.Token))))
	if h.Get("Retry-After") != "1" || h.Values("RateLimit") == nil || h.Get("X-RateLimit-Reason") == mete.ReasonStoreError {
		t.Errorf("header %v, want that of a denial", h)
	}
}

func TestUnavailable(t *testing.T) {
	w := newWriter(t, ratelimitfields.Config{DisableJitter: true})
	rec := httptest.NewRecorder()
	w.Unavailable(rec, httptest.NewRequest("GET", "/", nil))
	if rec.Code != http.StatusServiceUnavailable || rec.Header().Get("Retry-After") != "1" || rec.Header().Values("RateLimit") != nil {
		t.Errorf("got status %d, header %v", rec.Code, rec.Header())
	}
}

func TestStatus_Allowed(t *testing.T) {
	if got := ratelimitfields.Status(&mete.Decision{Allowed: true, Degraded: true}); got != http.StatusOK {
		t.Errorf("got %d, want 200", got)
	}
}

// retryAfter returns the Retry-After of n clients for the same wait.
func retryAfter(t *testing.T, w *ratelimitfields.Writer, wait time.Duration, n int) []int {
	t.Helper()
	all := make([]int, n)
	for i := range all {
		h := http.Header{}
		w.Header(h, &mete.Decision{Reason: "r", RetryAfter: wait}, "192.0.2.1", "k"+strconv.Itoa(i))
		got, err := strconv.Atoi(h.Get("Retry-After"))
		if err != nil {
			t.Fatalf("Retry-After %q: %v", h.Get("Retry-After"), err)
		}
		all[i] = got
	}
	return all
}

func TestJitter_SpreadsClients(t *testing.T) {
	const clients = 10_000
	w := newWriter(t, ratelimitfields.Config{})
	for _, tt := range []struct {
		wait      time.Duration
		low, high int
	}{
		{time.Microsecond, 1, 2},
		{time.Second, 1, 2},
		{time.Second + time.Microsecond, 2, 3},
		{3 * time.Second, 3, 4},
		{5 * time.Second, 5, 7},
		{time.Minute, 60, 90},
	} {
		counts := map[int]int{}
		for _, got := range retryAfter(t, w, tt.wait, clients) {
			counts[got]++
		}
		even := float64(clients) / float64(tt.high-tt.low+1)
		for got, n := range counts {
			// Six standard deviations: once in a billion runs.
			if got < tt.low || got > tt.high || math.Abs(float64(n)-even) > 6*math.Sqrt(even) {
				t.Errorf("wait %v: %d of %d clients are told %d, want %.0f each from %d to %d", tt.wait, n, clients, got, even, tt.low, tt.high)
			}
		}
	}
}

// The jitter comes from the rule with the longest wait, and no wait is shortened.
func TestJitter_OfTheRule(t *testing.T) {
	const clients = 1000
	for _, tt := range []struct {
		jitter    string // of the rule
		config    ratelimitfields.Config
		wait      time.Duration
		low, high int
	}{
		{"", ratelimitfields.Config{}, 10 * time.Second, 10, 15},
		{"", ratelimitfields.Config{DisableJitter: true}, 10 * time.Second, 10, 10},
		{"0", ratelimitfields.Config{}, 10 * time.Second, 10, 10},
		{"20%", ratelimitfields.Config{}, 9500 * time.Millisecond, 10, 12},
		{"20%", ratelimitfields.Config{DisableJitter: true}, 10 * time.Second, 10, 12},
		{"20%", ratelimitfields.Config{DisableJitter: true, IgnoreRules: true}, 10 * time.Second, 10, 10},
		{"100%", ratelimitfields.Config{}, 10 * time.Second, 10, 20},
		{"1%", ratelimitfields.Config{}, 10 * time.Second, 10, 11}, // a second at least
		{"1%", ratelimitfields.Config{}, 250 * time.Second, 250, 252},
		{"100%", ratelimitfields.Config{}, 30 * 365 * 24 * time.Hour, 30 * 365 * 86400, 2 * 30 * 365 * 86400},
	} {
		slow := status(newLimit(t, "slow", "1", "1/1s"), 0, bucket.Token)
		slow.RetryAfter, slow.Rule = tt.wait, ruleOf(t, "", tt.jitter)
		fast := status(newLimit(t, "fast", "1", "1/1s"), 0, bucket.Token)
		fast.Rule = ruleOf(t, "", "7%")
		w, least, most := newWriter(t, tt.config), math.MaxInt, 0
		for i := range clients {
			h := http.Header{}
			w.Header(h, decision(fast, slow), strconv.Itoa(i))
			got, err := strconv.Atoi(h["Retry-After"][0])
			if err != nil {
				t.Fatalf("Retry-After %q: %v", h["Retry-After"], err)
			}
			if reset := h.Values("RateLimit-Reset"); len(reset) > 0 && reset[0] != h["Retry-After"][0] {
				t.Fatalf("got Reset %s and Retry-After %d", reset, got)
			}
			least, most = min(least, got), max(most, got)
		}
		if least < tt.low || most > tt.high || tt.high-tt.low < 20 && (least != tt.low || most != tt.high) {
			t.Errorf("jitter %q, %+v, wait %v: clients are told %d to %d, want %d to %d", tt.jitter, tt.config, tt.wait, least, most, tt.low, tt.high)
		}
	}
}

func TestJitter_IsOfTheClient(t *testing.T) {
	const wait, clients = time.Hour, 100
	same := func(a, b ratelimitfields.Config) bool {
		return reflect.DeepEqual(retryAfter(t, newWriter(t, a), wait, clients), retryAfter(t, newWriter(t, b), wait, clients))
	}
	one, two := ratelimitfields.Config{JitterKey: []byte("one")}, ratelimitfields.Config{JitterKey: []byte("two")}
	if !same(one, one) {
		t.Error("two servers with one key tell a client different things")
	}
	if same(one, two) || same(ratelimitfields.Config{}, ratelimitfields.Config{}) {
		t.Error("servers with different keys tell clients the same")
	}
	for _, got := range retryAfter(t, newWriter(t, ratelimitfields.Config{DisableJitter: true}), wait, clients) {
		if got != 3600 {
			t.Errorf("without jitter: got %d, want 3600", got)
		}
	}
}
