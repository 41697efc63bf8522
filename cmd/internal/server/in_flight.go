// SPDX-License-Identifier: Apache-2.0

package server

import (
	"net/http"
	"sync/atomic"
)

// An inFlightLimit bounds the requests that are answered at the same time.
type inFlightLimit struct {
	most    int64
	exempt  func(*http.Request) bool // what something else bounds; nil for nothing
	now     atomic.Int64
	refused atomic.Uint64
}

// isStream reports whether r, to the admin address, asks for a stream. The API bounds the
// number of streams.
func isStream(r *http.Request) bool {
	return r.URL.Path == "/v1/traffic/stream" || r.URL.Path == "/v1/watch"
}

// enter answers with 503 what is too much. What asks whether the server is there is
// never that.
func (c *inFlightLimit) enter(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if c.exempt != nil && c.exempt(r) {
			next.ServeHTTP(w, r)
			return
		}
		defer c.now.Add(-1)
		if c.now.Add(1) > c.most && r.URL.Path != "/livez" && r.URL.Path != "/readyz" {
			c.refused.Add(1)
			w.Header()["Retry-After"] = []string{"1"}
			answerProblem(w, r, http.StatusServiceUnavailable, "the server is answering as many requests as it may; try again soon")
			return
		}
		next.ServeHTTP(w, r)
	})
}
