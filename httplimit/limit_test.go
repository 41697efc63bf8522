// SPDX-License-Identifier: Apache-2.0

package httplimit_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/httplimit"
	"github.com/metehq/mete/storetest"
)

func compile(t testing.TB, spec bucket.Spec) bucket.Limit {
	t.Helper()
	limit, _, err := spec.Compile()
	if err != nil {
		t.Fatal(err)
	}
	return limit
}

// hourly is a bucket of n tokens, and n an hour.
func hourly(t testing.TB, n bucket.Tokens) bucket.Limit {
	return compile(t, bucket.Spec{Capacity: n * bucket.Token, Rate: bucket.Rate{Tokens: n * bucket.Token, Per: time.Hour}})
}

// withoutPolicy is a limiter in the time of the process, or of a bubble.
func withoutPolicy(t testing.TB) *mete.Limiter {
	t.Helper()
	lim, err := mete.New(storetest.NewModel(func() bucket.Instant { return bucket.At(time.Now()) }), nil, mete.Config{})
	if err != nil {
		t.Fatal(err)
	}
	return lim
}

func routeOf(t testing.TB, lim *mete.Limiter, config httplimit.Config, limits ...httplimit.Limit) http.Handler {
	t.Helper()
	m, err := httplimit.New(lim, config, limits...)
	if err != nil {
		t.Fatal(err)
	}
	return m.Wrap(ok)
}

func TestLimit_Keys(t *testing.T) {
	byUser := func(missing httplimit.Missing) httplimit.Key {
		return httplimit.ByFunc("user", func(r *http.Request) (string, bool) {
			name, _, ok := r.BasicAuth()
			return name, ok
		}, missing)
	}
	address := func(a string) func(*http.Request) { return func(r *http.Request) { r.RemoteAddr = a } }
	apiKey := func(k string) func(*http.Request) { return func(r *http.Request) { r.Header.Set("X-API-Key", k) } }
	user := func(u string) func(*http.Request) { return func(r *http.Request) { r.SetBasicAuth(u, "") } }
	none := func(*http.Request) {}
	for _, tt := range []struct {
		what     string
		key      httplimit.Key
		one, two func(*http.Request)
		want     int // of two, after one has used up the bucket
	}{
		{"everyone", httplimit.Everyone(), address("192.0.2.1:1"), address("192.0.2.2:1"), 429},
		{"two addresses", httplimit.ByAddress(), address("192.0.2.1:1"), address("192.0.2.2:1"), 200},
		{"two ports", httplimit.ByAddress(), address("192.0.2.1:1"), address("192.0.2.1:2"), 429},
		{"one /64", httplimit.ByAddress(), address("[2001:db8::1]:1"), address("[2001:db8::ffff:1]:1"), 429},
		{"two /64", httplimit.ByAddress(), address("[2001:db8::1]:1"), address("[2001:db8:0:1::1]:1"), 200},
		{"no address", httplimit.ByAddress(), none, address("@"), 403},
		{"two API keys", httplimit.ByHeader("X-API-Key", httplimit.MissingDeny), apiKey("a"), apiKey("b"), 200},
		{"one API key", httplimit.ByHeader("x-api-key", httplimit.MissingDeny), apiKey("a"), apiKey("a"), 429},
		{"no API key", httplimit.ByHeader("X-API-Key", httplimit.MissingDeny), apiKey("a"), none, 403},
		{"an empty API key", httplimit.ByHeader("X-API-Key", httplimit.MissingDeny), apiKey("a"), apiKey(""), 403},
		{"no API key, skipped", httplimit.ByHeader("X-API-Key", httplimit.MissingSkip), none, none, 200},
		{"two users", byUser(httplimit.MissingDeny), user("a"), user("b"), 200},
		{"one user", byUser(httplimit.MissingDeny), user("a"), user("a"), 429},
		{"no user", byUser(httplimit.MissingDeny), user("a"), none, 403},
	} {
		handler := routeOf(t, withoutPolicy(t), httplimit.Config{}, httplimit.Limit{Name: "l", Bucket: hourly(t, 1), Key: tt.key})
		for i, change := range []func(*http.Request){tt.one, tt.two} {
			r := httptest.NewRequest("GET", "/", nil)
			change(r)
			if got := serve(handler, r).Code; i == 1 && got != tt.want {
				t.Errorf("%s: got status %d, want %d", tt.what, got, tt.want)
			}
		}
	}
}

// A route's limits and the policy's are charged together or not at all, and
// clients are told of each by its name.
func TestLimit_WithPolicy(t *testing.T) {
	var clock clock
	lim := newLimiter(t, storetest.NewModel(clock.instant), byAddress)
	handler := routeOf(t, lim, httplimit.Config{DisableJitter: true}, httplimit.Limit{Name: "uploads", Bucket: hourly(t, 1), Key: httplimit.Everyone()})
	r := httptest.NewRequest("GET", "/", nil)
	w := serve(handler, r)
	if got := w.Header().Get("RateLimit"); w.Code != 200 || !strings.Contains(got, `"free";r=1`) || !strings.Contains(got, `"uploads";r=0;t=3600`) {
		t.Errorf("got %d, RateLimit %q", w.Code, got)
	}
	w = serve(handler, r)
	if w.Code != 429 || w.Header().Get("Retry-After") != "3600" || !strings.Contains(w.Body.String(), `"violated-policies":["uploads"]`) {
		t.Errorf("got %d, Retry-After %q, %s", w.Code, w.Header().Get("Retry-After"), w.Body)
	}
	d, err := lim.Peek(t.Context(), mete.Request{Attributes: mete.Attrs{"ip:address": "192.0.2.1"}})
	if err != nil || d.Limits()[0].Remaining() != bucket.Token {
		t.Errorf("the policy's bucket: got %v left (%v), want 1: the second request was denied", d.Limits()[0].Remaining(), err)
	}
}

func TestNew_LimitErrors(t *testing.T) {
	good := httplimit.Limit{Name: "good", Bucket: hourly(t, 1), Key: httplimit.Everyone()}
	with := func(change func(*httplimit.Limit)) []httplimit.Limit {
		l := good
		change(&l)
		return []httplimit.Limit{l}
	}
	for _, tt := range []struct {
		limits []httplimit.Limit
		want   string
	}{
		{nil, "a policy or a limit is required"},
		{with(func(l *httplimit.Limit) { l.Key = httplimit.Key{} }), "key is required"},
		{with(func(l *httplimit.Limit) { l.Key = httplimit.ByHeader("X-API-Key", 0) }), "DenyMissing or SkipMissing"},
		{with(func(l *httplimit.Limit) { l.Key = httplimit.ByHeader("", httplimit.MissingDeny) }), `name ""`},
		{with(func(l *httplimit.Limit) { l.Key = httplimit.ByFunc("user", nil, httplimit.MissingDeny) }), "function is required"},
		{with(func(l *httplimit.Limit) { l.Name = "" }), `name ""`},
		{with(func(l *httplimit.Limit) { l.Name = "a|b" }), `name "a|b"`},
		{with(func(l *httplimit.Limit) { l.Bucket = bucket.Limit{} }), "bucket is required"},
		{with(func(l *httplimit.Limit) { l.Cost = -1 }), "cost"},
		{with(func(l *httplimit.Limit) { l.Cost = 2 }), "can ever admit"},
		{with(func(l *httplimit.Limit) { l.Shards = -1 }), "shards"},
		{with(func(l *httplimit.Limit) { l.Shards = 2 }), "each must hold a token"},
		{[]httplimit.Limit{good, good}, "duplicate name"},
	} {
		if _, err := httplimit.New(withoutPolicy(t), httplimit.Config{}, tt.limits...); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%+v: got error %v, want %q in it", tt.limits, err, tt.want)
		}
	}
}

// queue allows one request per second, and two more may wait.
func queue(t testing.TB) httplimit.Limit {
	rate := bucket.Rate{Tokens: bucket.Token, Per: time.Second}
	return httplimit.Limit{Name: "queue", Key: httplimit.Everyone(),
		Bucket: compile(t, bucket.Spec{Capacity: bucket.Token, Queue: 2 * bucket.Token, Rate: rate})}
}

// Queued requests wait for their turn, and are denied if the queue is full.
func TestWrap_Queue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		handler := routeOf(t, withoutPolicy(t), httplimit.Config{}, queue(t))
		begin := time.Now()
		type answer struct {
			status int
			after  time.Duration
		}
		answers := make(chan answer, 4)
		for range 4 {
			go func() {
				w := serve(handler, httptest.NewRequest("GET", "/", nil))
				answers <- answer{w.Code, time.Since(begin)}
			}()
			synctest.Wait()
		}
		for _, want := range []answer{{200, 0}, {429, 0}, {200, time.Second}, {200, 2 * time.Second}} {
			if got := <-answers; got != want {
				t.Errorf("got %v, want %v", got, want)
			}
		}
	})
}

// A client that goes away while it waits gives its place back.
func TestWrap_QueueGivesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		handler := routeOf(t, withoutPolicy(t), httplimit.Config{}, queue(t))
		serve(handler, httptest.NewRequest("GET", "/", nil))
		ctx, cancel := context.WithCancel(t.Context())
		status := make(chan int, 1)
		go func() { status <- serve(handler, httptest.NewRequest("GET", "/", nil).WithContext(ctx)).Code }()
		synctest.Wait()
		cancel()
		if got := <-status; got != http.StatusServiceUnavailable {
			t.Errorf("got status %d of the one that left, want 503", got)
		}
		begin := time.Now()
		serve(handler, httptest.NewRequest("GET", "/", nil))
		if took := time.Since(begin); took != time.Second {
			t.Errorf("the next one waited %v, want 1s: the place was given back", took)
		}
	})
}

func TestWrap_QueueTooLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		config := httplimit.Config{MaxDelay: 500 * time.Millisecond, DisableJitter: true}
		handler := routeOf(t, withoutPolicy(t), config, queue(t))
		serve(handler, httptest.NewRequest("GET", "/", nil))
		for range 3 {
			w := serve(handler, httptest.NewRequest("GET", "/", nil))
			if w.Code != 429 || w.Header().Get("Retry-After") != "1" {
				t.Errorf("got status %d, Retry-After %q, want 429 and 1", w.Code, w.Header().Get("Retry-After"))
			}
		}
		time.Sleep(500 * time.Millisecond)
		if w := serve(handler, httptest.NewRequest("GET", "/", nil)); w.Code != 200 {
			t.Errorf("after half a second: got status %d, want 200", w.Code)
		}
	})
}
