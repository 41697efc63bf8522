// SPDX-License-Identifier: Apache-2.0

package proxy_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync/atomic"
	"testing"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/httplimit"
	"github.com/metehq/mete/proxy"
	"github.com/metehq/mete/storetest"
)

// Queued requests reach the upstream later, in order.
func TestProxy_Queue(t *testing.T) {
	const apart = 20 * time.Millisecond
	limit, _, err := bucket.Spec{Capacity: bucket.Token, Queue: 2 * bucket.Token, Rate: bucket.Rate{Tokens: bucket.Token, Per: apart}}.Compile()
	if err != nil {
		t.Fatal(err)
	}
	limiter, err := mete.New(storetest.NewModel(func() bucket.Instant { return bucket.At(time.Now()) }), nil, mete.Config{})
	if err != nil {
		t.Fatal(err)
	}
	mw, err := httplimit.New(limiter, httplimit.Config{}, httplimit.Limit{Name: "queue", Bucket: limit, Key: httplimit.Everyone()})
	if err != nil {
		t.Fatal(err)
	}
	var reached atomic.Int64
	upstream := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached.Add(1) }))
	defer upstream.Close()
	to, err := url.Parse(upstream.URL)
	if err != nil {
		t.Fatal(err)
	}
	p, err := proxy.New(to, mw, proxy.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	begin := time.Now()
	for range 5 { // one after the other: each is admitted, and waits
		w := httptest.NewRecorder()
		p.ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
		if w.Code != http.StatusOK {
			t.Errorf("got status %d, want 200", w.Code)
		}
	}
	if took := time.Since(begin); took < 4*apart || reached.Load() != 5 {
		t.Errorf("%d requests reached the upstream in %v, want 5 in at least %v", reached.Load(), took, 4*apart)
	}
}

// queued returns a middleware with a queue of ten, which releases one request per hour.
func queued(t *testing.T, config httplimit.Config) *httplimit.Middleware {
	t.Helper()
	config.MaxDelay = 24 * time.Hour
	limit, _, err := bucket.Spec{Capacity: bucket.Token, Queue: 10 * bucket.Token, Rate: bucket.Rate{Tokens: bucket.Token, Per: time.Hour}}.Compile()
	if err != nil {
		t.Fatal(err)
	}
	limiter, err := mete.New(storetest.NewModel(func() bucket.Instant { return bucket.At(time.Now()) }), nil, mete.Config{})
	if err != nil {
		t.Fatal(err)
	}
	mw, err := httplimit.New(limiter, config, httplimit.Limit{Name: "queue", Bucket: limit, Key: httplimit.Everyone()})
	if err != nil {
		t.Fatal(err)
	}
	return mw
}

// until waits for a condition.
func until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for !holds() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("not within %v: %s", patience, what)
		}
	}
}
