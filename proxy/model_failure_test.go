// SPDX-License-Identifier: Apache-2.0

package proxy_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/httplimit"
	"github.com/metehq/mete/memstore"
	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/proxy"
)

// newModelMiddleware returns the middleware of a policy for language models, and its settlements.
func newModelMiddleware(t *testing.T, rules string) (*httplimit.Middleware, chan policy.Settlement) {
	t.Helper()
	m, err := policy.Load([]byte(rules), policy.Options{})
	if err != nil {
		t.Fatal(err)
	}
	store, err := memstore.New(memstore.Config{})
	if err != nil {
		t.Fatal(err)
	}
	settled := make(chan policy.Settlement, 10)
	limiter, err := mete.New(store, m, mete.Config{OnSettlement: func(_ context.Context, s *policy.Settlement) { settled <- *s }})
	if err != nil {
		t.Fatal(err)
	}
	mw, err := httplimit.New(limiter, httplimit.Config{})
	if err != nil {
		t.Fatal(err)
	}
	return mw, settled
}

// The provider bills a request that it has, even if its response does not arrive. A request that was not sent is free.
func TestModel_FailuresOfTheUpstream(t *testing.T) {
	const text = `data: {"choices":[{"index":0,"delta":{"content":"hello"},"finish_reason":null}]}` + "\n\n"
	abort := func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.ReadAll(r.Body)
		panic(http.ErrAbortHandler)
	}
	wait := func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.ReadAll(r.Body)
		<-r.Context().Done()
	}
	begin := func(end http.HandlerFunc) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprint(w, text)
			w.(http.Flusher).Flush()
			end(w, r)
		}
	}
	status := func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(http.StatusBadGateway) }
	plain := func(t *testing.T, h http.HandlerFunc) string { return serve(t, h) }
	for _, tt := range []struct {
		name    string
		start   func(*testing.T, http.HandlerFunc) string
		handler http.HandlerFunc
		config  proxy.Config
		status  int
		charged bucket.Tokens
	}{
		{"no header in time", plain, wait, proxy.Config{HeaderTimeout: 50 * time.Millisecond}, 504, 80},
		{"the connection breaks before the header", plain, abort, proxy.Config{}, 502, 80},
		{"the connection breaks after the header", plain, begin(abort), proxy.Config{}, 200, 80},
		{"the body stalls", plain, begin(wait), proxy.Config{BodyTimeout: 50 * time.Millisecond}, 200, 80},
		{"the provider's own error", plain, status, proxy.Config{}, 502, 0},
		{"no connection", closedServer, nil, proxy.Config{}, 502, 0},
		{"no TLS", plainAsTLS, status, proxy.Config{}, 502, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			mw, settled := newModelMiddleware(t, hangUpPolicy)
			front := serveProxy(t, tt.start(t, tt.handler), mw, tt.config)
			res, err := http.Post(front+"/v1/chat/completions", "application/json", strings.NewReader(hangUpRequest))
			if err != nil {
				t.Fatal(err)
			}
			_, _ = io.ReadAll(res.Body)
			res.Body.Close()
			if res.StatusCode != tt.status {
				t.Errorf("status %d, want %d", res.StatusCode, tt.status)
			}
			wantCharged(t, settled, tt.charged*bucket.Token)
		})
	}
}

// closedServer returns the address of a server that is gone.
func closedServer(t *testing.T, _ http.HandlerFunc) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return "http://" + l.Addr().String()
}

// plainAsTLS returns the address of a server without TLS as an https URL.
func plainAsTLS(t *testing.T, h http.HandlerFunc) string {
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	u, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	u.Scheme = "https"
	return u.String()
}
