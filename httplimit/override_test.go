// SPDX-License-Identifier: Apache-2.0

package httplimit_test

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/metehq/mete/httplimit"
	"github.com/metehq/mete/storetest"
)

// A blocked request gets a 429 with the time until the block ends, without jitter. An allowed one has no limit
// fields.
func TestWrap_Overrides(t *testing.T) {
	var clock clock
	const rules = `{"rules": [` + byAddress + `], "overrides": [
		{"id": "b", "action": "block", "match": {"path": "/bad"}, "reason": "an inner matter", "author": "a", "expires_at": "2100-01-01T00:00:00Z"},
		{"id": "a", "action": "allow", "match": {"path": "/vip"}, "reason": "r", "author": "a", "expires_at": "2100-01-01T00:00:00Z"}]}`
	handler := newMiddleware(t, newLimiter(t, storetest.NewModel(clock.instant), rules), httplimit.Config{}).Wrap(ok)

	w := serve(handler, httptest.NewRequest("GET", "/bad", nil))
	left := time.Until(time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC)).Seconds()
	retry, err := strconv.ParseFloat(w.Header().Get("Retry-After"), 64)
	if w.Code != http.StatusTooManyRequests || err != nil || retry < left-60 || retry > left+60 || !slices.Equal(w.Header().Values("X-RateLimit-Reason"), []string{"blocked"}) {
		t.Errorf("blocked: %d %v, want 429, about %.0f s and the reason", w.Code, w.Header(), left)
	}
	if body := w.Body.String(); !strings.Contains(body, "blocked") || strings.Contains(body, "inner matter") || w.Header().Values("RateLimit") != nil {
		t.Errorf("blocked: %s, %v; want a problem that says so, and no limit", body, w.Header())
	}
	for range 3 {
		if w := serve(handler, httptest.NewRequest("GET", "/vip", nil)); w.Code != 200 || w.Header().Values("RateLimit") != nil {
			t.Errorf("allowed: %d %v, want 200 and no limit", w.Code, w.Header())
		}
	}
}
