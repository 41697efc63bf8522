// SPDX-License-Identifier: Apache-2.0

package httplimit_test

import (
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"
	"time"

	"github.com/metehq/mete/httplimit"
	"github.com/metehq/mete/storetest"
)

// The fields of a response name the end of a penalty: r is 0, and t the wait. Jitter never makes Retry-After earlier.
func TestPenalty(t *testing.T) {
	c := new(clock)
	c.add(time.Hour)
	m := newMiddleware(t, newLimiter(t, storetest.NewModel(c.instant),
		`{"name": "login", "limit_keys": [], "penalty": "10m", "algorithm_config": {"rps": 1, "burst": 2}}`), httplimit.Config{})
	ask := func() *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		m.Wrap(ok).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
		return w
	}
	ask()
	ask()
	for i := range 5 {
		w := ask()
		left := 600 - i
		wait, err := strconv.Atoi(w.Header().Get("Retry-After"))
		if w.Code != http.StatusTooManyRequests || err != nil || wait < left || wait > left+left/2+1 {
			t.Errorf("%d with Retry-After %q, want 429 and %d s or up to half more", w.Code, w.Header().Get("Retry-After"), left)
		}
		if got := w.Header().Get("RateLimit"); got != `"login";r=0;t=`+strconv.Itoa(wait) {
			t.Errorf("RateLimit %q, want r=0 and t=%d: %v", got, wait, w.Header())
		}
		c.add(time.Second)
	}
	c.add(595 * time.Second)
	if w := ask(); w.Code != http.StatusOK {
		t.Errorf("%d after the penalty, want 200", w.Code)
	}
}
