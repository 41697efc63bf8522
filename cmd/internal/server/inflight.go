// SPDX-License-Identifier: Apache-2.0

package server

import (
	"net/http"
	"sync/atomic"
)

// An inFlightLimit bounds the number of concurrent requests.
type inFlightLimit struct {
	most    int64
	exempt  func(*http.Request) bool // requests with a limit of their own; nil for none
	now     atomic.Int64
	refused atomic.Uint64
}

// isStream reports whether r opens an event stream on the admin address. The API limits streams separately.
func isStream(r *http.Request) bool {
	return r.URL.Path == "/v1/traffic/stream" || r.URL.Path == "/v1/watch"
}

// enter rejects requests above the limit with status 503, except health checks.
func (c *inFlightLimit) enter(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if c.exempt(r) {
			next.ServeHTTP(w, r)
			return
		}
		defer c.now.Add(-1)
		if c.now.Add(1) > c.most && r.URL.Path != "/livez" && r.URL.Path != "/readyz" {
			c.refused.Add(1)
			w.Header()["Retry-After"] = []string{"1"}
			answerProblem(w, r, http.StatusServiceUnavailable, "too many requests in flight; try again soon")
			return
		}
		next.ServeHTTP(w, r)
	})
}
