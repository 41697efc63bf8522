// SPDX-License-Identifier: Apache-2.0

package proxy_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/httplimit"
	"github.com/metehq/mete/memstore"
	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/proxy"
)

// observed is a middleware with a rule of 100 tokens per day and the charge_on. Its settlements arrive in the channel.
func observed(t testing.TB, chargeOn string) (*httplimit.Middleware, <-chan policy.Settlement) {
	t.Helper()
	m, err := policy.Load(fmt.Appendf(nil, `{"name": "all", "limit_keys": [], "deadline": "10s", "charge_on": %s, "algorithm_config": {"rate": "100/1d", "burst": 100}}`, chargeOn), policy.Options{})
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

func wantCharged(t testing.TB, settled <-chan policy.Settlement, want bucket.Tokens) {
	t.Helper()
	if s := receive(t, settled, "settlement"); s.Charged != want || s.Err != nil {
		t.Errorf("charged %v (%v), want %v", s.Charged, s.Err, want)
	}
}

// The status that the client gets decides, also if the proxy sends it.
func TestChargeOn_Status(t *testing.T) {
	mw, settled := observed(t, `{"status": [401, 502]}`)
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusEarlyHints)
		if r.URL.Path == "/wrong" {
			w.WriteHeader(http.StatusUnauthorized)
		}
	}))
	front := serveProxy(t, upstream.URL, mw, proxy.Config{})
	get(t, front+"/right")
	wantCharged(t, settled, 0)
	get(t, front+"/wrong")
	wantCharged(t, settled, bucket.Token)
	upstream.Close()
	if resp, _ := get(t, front+"/dead"); resp.StatusCode != http.StatusBadGateway {
		t.Errorf("got %d from a dead upstream", resp.StatusCode)
	}
	wantCharged(t, settled, bucket.Token)
}

// A stream is refunded when it begins. A client that leaves before that keeps its charge.
func TestChargeOn_Stream(t *testing.T) {
	mw, settled := observed(t, `{"status": ["4xx"]}`)
	began, gone := make(chan struct{}, 1), make(chan struct{}, 1)
	upstream := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/stream" {
			w.(http.Flusher).Flush()
		}
		began <- struct{}{}
		<-r.Context().Done()
		gone <- struct{}{}
	})
	front := serveProxy(t, upstream, mw, proxy.Config{})
	for _, path := range []string{"/stream", "/silent"} {
		ctx, leave := context.WithCancel(t.Context())
		req, _ := http.NewRequestWithContext(ctx, "GET", front+path, nil)
		go http.DefaultClient.Do(req)
		receive(t, began, "upstream")
		if path == "/stream" {
			wantCharged(t, settled, 0) // while it runs
		}
		leave()
		receive(t, gone, "upstream")
		if path == "/silent" {
			wantCharged(t, settled, bucket.Token)
		}
	}
}

// A response that breaks off is charged by its bytes, whichever side leaves.
func TestChargeOn_Bytes(t *testing.T) {
	mw, settled := observed(t, `{"response_bytes": 1000}`)
	more := make(chan struct{})
	upstream := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", "5000")
		io.WriteString(w, strings.Repeat("x", 3000))
		if r.URL.Path == "/dies" {
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		}
		if r.URL.Path == "/left" {
			w.(http.Flusher).Flush()
			<-more
		}
		io.WriteString(w, strings.Repeat("x", 2000))
	})
	front := serveProxy(t, upstream, mw, proxy.Config{})
	get(t, front+"/")
	wantCharged(t, settled, 5*bucket.Token)
	if resp, err := http.Get(front + "/dies"); err == nil {
		if _, err := io.ReadAll(resp.Body); err == nil {
			t.Error("the response of a dying upstream is complete")
		}
	}
	wantCharged(t, settled, 3*bucket.Token)

	ctx, leave := context.WithCancel(t.Context())
	req, _ := http.NewRequestWithContext(ctx, "GET", front+"/left", nil)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	io.ReadFull(resp.Body, make([]byte, 3000))
	leave()
	wantCharged(t, settled, 3*bucket.Token)
	close(more)
}

// An upgraded connection has the status 101, and ends when it is closed.
func TestChargeOn_Upgrade(t *testing.T) {
	mw, settled := observed(t, `{"status": [101], "response_bytes": 1000}`)
	upstream := serve(t, func(w http.ResponseWriter, r *http.Request) {
		conn, buffered, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		fmt.Fprint(buffered, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n"+strings.Repeat("x", 2000))
		buffered.Flush()
		io.Copy(io.Discard, conn)
	})
	front := serveProxy(t, upstream, mw, proxy.Config{})
	client, err := net.Dial("tcp", strings.TrimPrefix(front, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprint(client, "GET / HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n")
	reader := bufio.NewReader(client)
	if resp, err := http.ReadResponse(reader, nil); err != nil || resp.StatusCode != http.StatusSwitchingProtocols {
		t.Fatalf("got %v (%v), want 101", resp, err)
	}
	io.ReadFull(reader, make([]byte, 2000))
	if len(settled) > 0 {
		t.Error("the connection was settled before its end")
	}
	client.Close()
	if s := receive(t, settled, "settlement"); s.Charged <= 2*bucket.Token || s.Charged > 3*bucket.Token {
		t.Errorf("charged %v, want 2 tokens and the response header", s.Charged)
	}
}

// A gRPC call through the proxy counts by the code in its trailer.
func TestChargeOn_GRPCTrailer(t *testing.T) {
	mw, settled := observed(t, `{"grpc": ["UNAUTHENTICATED"]}`)
	upstream := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/grpc")
		w.Header().Set("Trailer", "Grpc-Status")
		io.WriteString(w, "message")
		w.Header().Set("Grpc-Status", r.URL.Query().Get("code"))
	})
	front := serveProxy(t, upstream, mw, proxy.Config{})
	for code, want := range map[string]bucket.Tokens{"16": bucket.Token, "0": 0, "7": 0, "bad": 0} {
		get(t, front+"/?code="+code)
		wantCharged(t, settled, want)
	}
}
