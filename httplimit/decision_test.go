// SPDX-License-Identifier: Apache-2.0

package httplimit_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/httplimit"
	"github.com/metehq/mete/store"
)

// The hook sees the client's result: the names of routes' limits, and denials that the limiter does not know.
func TestOnDecision(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var seen []string
		config := httplimit.Config{MaxDelay: 500 * time.Millisecond, OnDecision: func(_ context.Context, d *mete.Decision) {
			seen = append(seen, fmt.Sprintf("%v %s %s", d.Allowed, d.Rule, d.Reason))
		}}
		keyed := httplimit.Limit{Name: "keyed", Bucket: hourly(t, 2), Key: httplimit.ByHeader("X-API-Key", httplimit.MissingDeny)}
		handler := routeOf(t, withoutPolicy(t), config, keyed, queue(t))
		for i, want := range []int{403, 200, 429, 200, 429} {
			r := httptest.NewRequest("GET", "/", nil)
			if i > 0 {
				r.Header.Set("X-API-Key", "secret")
			}
			if i == 3 {
				time.Sleep(time.Second)
			}
			if got := serve(handler, r).Code; got != want {
				t.Errorf("request %d: got status %d, want %d", i, got, want)
			}
		}
		want := []string{"false keyed missing_attribute", "true keyed ", "false queue leaky_bucket_exceeded", "true keyed ", "false keyed token_bucket_exceeded"}
		if !slices.Equal(seen, want) {
			t.Errorf("the hook saw\n%q, want\n%q", seen, want)
		}
	})
}

// A request with too many limits cannot be decided. The hook gets the error, and the client no 429.
func TestOnDecision_TooManyLimits(t *testing.T) {
	var rules []string
	for i := range store.MaxCharges - 1 {
		rules = append(rules, fmt.Sprintf(`{"name": "r%d", "group": "g%d", "limit_keys": [], "algorithm": "token_bucket",
			"algorithm_config": {"rps": 1, "burst": 1}}`, i, i))
	}
	lim := newLimiter(t, brokenStore{}, `{"rules": [`+strings.Join(rules, ",")+`]}`)
	var seen mete.Decision
	limit := func(name string) httplimit.Limit {
		return httplimit.Limit{Name: name, Bucket: hourly(t, 1), Key: httplimit.Everyone()}
	}
	handler := routeOf(t, lim, httplimit.Config{OnDecision: func(_ context.Context, d *mete.Decision) { seen = *d }}, limit("a"), limit("b"))
	if got := serve(handler, httptest.NewRequest("GET", "/", nil)).Code; got != http.StatusServiceUnavailable {
		t.Errorf("got status %d, want 503", got)
	}
	if seen.Allowed || !seen.Degraded || !errors.Is(seen.Err, mete.ErrRequest) {
		t.Errorf("the hook saw %+v, want ErrRequest", seen)
	}
}

// A request that would not live to see its turn is denied at once.
func TestWrap_QueuePastDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		handler := routeOf(t, withoutPolicy(t), httplimit.Config{DisableJitter: true}, queue(t))
		serve(handler, httptest.NewRequest("GET", "/", nil))
		ctx, cancel := context.WithTimeout(t.Context(), 900*time.Millisecond)
		defer cancel()
		begin := time.Now()
		w := serve(handler, httptest.NewRequestWithContext(ctx, "GET", "/", nil))
		if w.Code != 429 || w.Header().Get("Retry-After") != "1" || time.Since(begin) != 0 {
			t.Errorf("got status %d, Retry-After %q after %v, want 429 at once", w.Code, w.Header().Get("Retry-After"), time.Since(begin))
		}
	})
}
