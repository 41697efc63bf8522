// SPDX-License-Identifier: Apache-2.0

package httplimit_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/httplimit"
	"github.com/metehq/mete/memstore"
	"github.com/metehq/mete/policy"
)

// Clients that hang up while a leaky bucket delays them do not make room for a burst:
// what reaches the handler stays within capacity + rate·t.
func TestHangUp_KeepsTheBound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clock := func() bucket.Instant { return bucket.At(time.Now()) }
		store, err := memstore.New(memstore.Config{Now: clock})
		if err != nil {
			t.Fatal(err)
		}
		rules, err := policy.Load([]byte(`{"name": "leak", "limit_keys": ["ip:address"], "algorithm": "leaky_bucket",
			"algorithm_config": {"rps": 10, "queue": 100}}`), policy.Options{})
		if err != nil {
			t.Fatal(err)
		}
		limiter, err := mete.New(store, rules, mete.Config{Now: clock})
		if err != nil {
			t.Fatal(err)
		}
		limits, err := httplimit.New(limiter, httplimit.Config{})
		if err != nil {
			t.Fatal(err)
		}
		var mu sync.Mutex
		var starts []time.Time
		handler := limits.Wrap(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
			mu.Lock()
			defer mu.Unlock()
			starts = append(starts, time.Now())
		}))
		send := func() context.CancelFunc {
			ctx, cancel := context.WithCancel(t.Context())
			go func() {
				r := httptest.NewRequestWithContext(ctx, http.MethodGet, "http://example.com/", nil)
				handler.ServeHTTP(httptest.NewRecorder(), r)
			}()
			synctest.Wait() // it waits for its turn, or is over
			return cancel
		}
		for range 40 {
			var hangUp []context.CancelFunc
			for range 60 {
				hangUp = append(hangUp, send())
			}
			for _, cancel := range hangUp[:len(hangUp)-1] {
				cancel()
				synctest.Wait()
			}
			time.Sleep(50 * time.Millisecond)
		}
		time.Sleep(time.Minute)
		mu.Lock()
		defer mu.Unlock()
		for i := range starts {
			for j := i; j < len(starts); j++ {
				if elapsed := starts[j].Sub(starts[i]); j-i+1 > 1+int(elapsed/(100*time.Millisecond)) {
					t.Fatalf("%d requests reached the handler within %v; the bound is %d", j-i+1, elapsed, 1+int(elapsed/(100*time.Millisecond)))
				}
			}
		}
		if len(starts) < 2 { // most slots leak when their clients hang up
			t.Errorf("%d requests reached the handler, want at least 2", len(starts))
		}
	})
}
