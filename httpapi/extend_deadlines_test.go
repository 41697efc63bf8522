// SPDX-License-Identifier: Apache-2.0

package httpapi_test

import (
	"context"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/httpapi"
	"github.com/metehq/mete/storetest"
)

// leaky lets one request start every 100 ms, and two wait.
const leaky = `{"name": "leaky", "limit_keys": [], "algorithm": "leaky_bucket", "algorithm_config": {"rps": 10, "queue": 2}}`

// The callers of the verbs are told how long a request has to wait.
func TestTake_LeakyBucket(t *testing.T) {
	api, c := newAPI(t, leaky, httpapi.Config{})
	const any = `{"attributes":{}}`
	answer := func(wait, remaining, owed, full string) string {
		return `{"allowed":true,"rule":"leaky","reason":"","retry_after":0` + wait + `,"degraded":false,"limits":[` +
			`{"rule":"leaky","limit":"leaky","remaining":` + remaining + owed + `,"retry_after":0,"full_after":` + full + `}]}`
	}
	wantAnswer(t, api, "/v1/take", any, 200, answer("", "2", "", "0.1"))
	wantAnswer(t, api, "/v1/take", any, 200, answer(`,"wait":0.1`, "1", `,"owed":1`, "0.2"))
	c.advance(50 * time.Millisecond)
	wantAnswer(t, api, "/v1/peek", any, 200, answer(`,"wait":0.15`, "1", `,"owed":0.5`, "0.15")) // what a take would have to wait
	wantAnswer(t, api, "/v1/take", any, 200, answer(`,"wait":0.15`, "0", `,"owed":1.5`, "0.25"))
	wantAnswer(t, api, "/v1/take", any, 200, `{"allowed":false,"rule":"leaky","reason":"leaky_bucket_exceeded","retry_after":0.05,"degraded":false,"limits":[`+
		`{"rule":"leaky","limit":"leaky","remaining":0,"owed":1.5,"retry_after":0.05,"full_after":0.25}]}`)
}

// leakyGateway is to be made in a bubble: its store has the bubble's clock.
func leakyGateway(t *testing.T, most time.Duration) *httpapi.API {
	store := storetest.NewModel(func() bucket.Instant { return bucket.At(time.Now()) })
	return apiOver(t, store, leaky, httpapi.Config{Gateway: httpapi.Gateway{Profile: httpapi.ProfileCaddy, TrustedHops: 1, DisableJitter: true, MaxDelay: most}})
}

// A gateway cannot be told to wait: its answer comes when the request may start.
func TestDecision_DelaysQueuedRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := leakyGateway(t, 0)
		start := time.Now()
		for _, tc := range []struct {
			asked, answered time.Duration
			status          int
		}{
			{0, 0, 200}, {0, 100 * time.Millisecond, 200}, {0, 200 * time.Millisecond, 200}, {0, 0, 429},
			{350 * time.Millisecond, 350 * time.Millisecond, 200},
		} {
			go func() {
				time.Sleep(tc.asked)
				w := ask(api, "GET", caddyCheap...)
				if after := time.Since(start); w.Code != tc.status || after != tc.answered {
					t.Errorf("asked after %v: %d after %v, want %d after %v", tc.asked, w.Code, after, tc.status, tc.answered)
				}
			}()
			synctest.Wait()
		}
		time.Sleep(time.Second)
		synctest.Wait()
	})
}

// A client that gives up frees its place for others.
func TestDecision_RefundsCanceledRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := leakyGateway(t, 0)
		ask(api, "GET", caddyCheap...)
		ctx, cancel := context.WithCancel(t.Context())
		r := httptest.NewRequestWithContext(ctx, "GET", "/v1/decision", nil)
		r.Header.Set("X-Forwarded-Method", "GET")
		r.Header.Set("X-Forwarded-Uri", "/")
		r.Header.Set("X-Forwarded-Host", "api.example")
		done := make(chan struct{})
		go func() {
			api.ServeHTTP(httptest.NewRecorder(), r)
			close(done)
		}()
		synctest.Wait()
		cancel()
		<-done
		start := time.Now()
		ask(api, "GET", caddyCheap...)
		if waited := time.Since(start); waited != 100*time.Millisecond {
			t.Errorf("the next waited for %v, want 100ms: as the first in the queue", waited)
		}
	})
}

// No request waits longer than MaxDelay.
func TestDecision_MaxDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := leakyGateway(t, 50*time.Millisecond)
		start := time.Now()
		for i, want := range []int{200, 429, 429, 429} {
			if w := ask(api, "GET", caddyCheap...); w.Code != want || time.Since(start) != 0 {
				t.Errorf("request %d: got %d after %v, want %d at once", i, w.Code, time.Since(start), want)
			}
		}
		time.Sleep(50 * time.Millisecond)
		if w := ask(api, "GET", caddyCheap...); w.Code != 200 || time.Since(start) != 100*time.Millisecond {
			t.Errorf("after 50ms: got %d after %v, want 200 after 100ms", w.Code, time.Since(start))
		}
	})
}
