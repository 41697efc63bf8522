// SPDX-License-Identifier: Apache-2.0

package soak_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"
)

// upstreamDelay is how long a slow answer takes to begin.
const upstreamDelay = 200 * time.Millisecond

// An upstream is the service behind the gateway.
type upstream struct {
	*httptest.Server
	served atomic.Int64 // requests for /hello that reached the upstream
}

func newUpstream(t *testing.T) *upstream {
	u := &upstream{}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /hello", func(rw http.ResponseWriter, r *http.Request) {
		u.served.Add(1)
		fmt.Fprintf(rw, "hello %s", r.URL.Query().Get("n"))
	})
	mux.HandleFunc("POST /echo", func(rw http.ResponseWriter, r *http.Request) {
		if body, err := io.ReadAll(r.Body); err == nil {
			rw.Write(body)
		}
	})
	mux.HandleFunc("GET /slow", func(rw http.ResponseWriter, r *http.Request) {
		if pause(r.Context(), upstreamDelay) {
			io.WriteString(rw, "at last")
		}
	})
	u.Server = httptest.NewServer(mux)
	t.Cleanup(u.Close)
	return u
}

// compareUpstream compares the upstream's count with the admitted requests.
func (w *world) compareUpstream() {
	if got, want := w.upstream.served.Load(), w.tally.passed.Load(); got != want {
		w.wrongs.add("the upstream saw %d requests, and %d were answered with 200", got, want)
	}
}
