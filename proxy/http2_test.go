// SPDX-License-Identifier: Apache-2.0

package proxy_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/metehq/mete/httplimit"
	"github.com/metehq/mete/proxy"
)

// protocols is HTTP/1, or HTTP/2 without TLS.
func protocols(h2c bool) *http.Protocols {
	p := new(http.Protocols)
	p.SetHTTP1(!h2c)
	p.SetUnencryptedHTTP2(h2c)
	return p
}

// serveH2C serves h as HTTP/2 without TLS, and returns its address.
func serveH2C(t *testing.T, h http.Handler) string {
	t.Helper()
	server := httptest.NewUnstartedServer(h)
	server.Config.Protocols = protocols(true)
	server.Start()
	t.Cleanup(server.Close)
	return server.Listener.Addr().String()
}

// gateTo is a proxy to one upstream.
func gateTo(t *testing.T, u proxy.Upstream, config proxy.Config) *proxy.Proxy {
	t.Helper()
	u.Name = "app"
	p, err := proxy.NewRouted([]proxy.Upstream{u}, []proxy.Route{{Upstream: "app"}}, middleware(t, 1000, httplimit.Config{}), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	return p
}

// talk first writes the protocol. Then it echoes each line and ends with trailers, like gRPC.
func talk(t *testing.T) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Trailer", "Grpc-Status")
		w.Header().Set("X-Proto", r.Proto)
		if r.Header.Get("Te") != "trailers" {
			t.Errorf("TE is %q", r.Header.Get("Te"))
		}
		control := http.NewResponseController(w)
		_ = control.EnableFullDuplex()
		w.WriteHeader(200)
		control.Flush()
		lines := bufio.NewReader(r.Body)
		for {
			line, err := lines.ReadString('\n')
			if err != nil {
				break
			}
			io.WriteString(w, line)
			control.Flush()
		}
		w.Header().Set("Grpc-Status", "0")
		w.Header().Set(http.TrailerPrefix+"X-Sent", r.Trailer.Get("X-Sum"))
	}
}

// Both directions stream at the same time, with trailers, over every pair of protocols.
func TestStreamsInBothDirections(t *testing.T) {
	encrypted := httptest.NewUnstartedServer(talk(t))
	encrypted.EnableHTTP2 = true
	encrypted.StartTLS()
	defer encrypted.Close()
	plain := serve(t, talk(t))
	roots := x509.NewCertPool()
	roots.AddCert(encrypted.Certificate())
	for _, up := range []struct{ url, proto string }{
		{plain, "HTTP/1.1"}, {"h2c://" + serveH2C(t, talk(t)), "HTTP/2.0"}, {encrypted.URL, "HTTP/2.0"},
	} {
		for _, h2c := range []bool{false, true} {
			t.Run(up.url[:5]+" for h2c "+map[bool]string{true: "clients", false: "no clients"}[h2c], func(t *testing.T) {
				target, err := url.Parse(up.url)
				if err != nil {
					t.Fatal(err)
				}
				p := gateTo(t, proxy.Upstream{Servers: []*url.URL{target}, TLS: &tls.Config{RootCAs: roots}}, proxy.Config{})
				front := httptest.NewUnstartedServer(p)
				front.Config.Protocols = protocols(h2c)
				front.Start()
				defer front.Close()
				client := &http.Transport{Protocols: protocols(h2c)}
				defer client.CloseIdleConnections()
				streamLines(t, client, front.URL, up.proto)
			})
		}
	}
}

func streamLines(t *testing.T, client *http.Transport, to, proto string) {
	t.Helper()
	body, write := io.Pipe()
	req, err := http.NewRequest(http.MethodPost, to+"/svc/Call", body)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Te", "trailers")
	req.Trailer = http.Header{"X-Sum": nil}
	resp, err := client.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if got := resp.Header.Get("X-Proto"); got != proto || resp.Header.Get("RateLimit") == "" {
		t.Errorf("the upstream was asked in %s, want %s; RateLimit is %q", got, proto, resp.Header.Get("RateLimit"))
	}
	lines := bufio.NewReader(resp.Body)
	for _, line := range []string{"one\n", "two\n", "three\n"} {
		if _, err := io.WriteString(write, line); err != nil {
			t.Fatal(err)
		}
		got := make(chan string, 1)
		go func() {
			text, _ := lines.ReadString('\n')
			got <- text
		}()
		if text := receive(t, got, "answer to "+line); text != line {
			t.Fatalf("got %q, want %q", text, line)
		}
	}
	req.Trailer.Set("X-Sum", "42")
	write.Close()
	if rest, err := io.ReadAll(lines); err != nil || len(rest) > 0 {
		t.Errorf("then got %q (%v), want the end", rest, err)
	}
	if s, x := resp.Trailer.Get("Grpc-Status"), resp.Trailer.Get("X-Sent"); s != "0" || x != "42" {
		t.Errorf("the trailers are %v, want the status and the client's own", resp.Trailer)
	}
}

// A call that an HTTP/2 client cancels ends at the upstream.
func TestClientGone_OneOfManyCalls(t *testing.T) {
	arrived, ended := make(chan struct{}), make(chan struct{})
	up := serveH2C(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/other" {
			return
		}
		close(arrived)
		<-r.Context().Done()
		close(ended)
	}))
	p := gateTo(t, proxy.Upstream{Servers: []*url.URL{{Scheme: "h2c", Host: up}}}, proxy.Config{})
	front := serveH2C(t, p)
	client := &http.Client{Transport: &http.Transport{Protocols: protocols(true)}}
	defer client.CloseIdleConnections()
	ctx, cancel := context.WithCancel(context.Background())
	failed := make(chan error, 1)
	go func() {
		req, _ := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+front, strings.NewReader("x"))
		_, err := client.Do(req)
		failed <- err
	}()
	receive(t, arrived, "call")
	cancel()
	receive(t, ended, "end of the call")
	if err := receive(t, failed, "error"); !errors.Is(err, context.Canceled) {
		t.Errorf("got error %v", err)
	}
	if resp, err := client.Get("http://" + front + "/other"); err != nil || resp.StatusCode != 200 {
		t.Errorf("another call on the same connection: got %v (%v)", resp, err)
	} else {
		resp.Body.Close()
	}
}

// A server with an untrusted certificate cannot be connected to.
func TestTLS_UnknownAuthority(t *testing.T) {
	server := httptest.NewUnstartedServer(named("x"))
	server.Config.ErrorLog = quiet()
	server.StartTLS()
	defer server.Close()
	target, _ := url.Parse(server.URL)
	alive, _ := url.Parse(serve(t, named("plain")))
	p := gateTo(t, proxy.Upstream{Servers: []*url.URL{target}}, proxy.Config{})
	w := ask(p, getRequest())
	wantProblem(t, w.Result(), w.Body.String(), 502)

	// Nothing was sent: another server has it.
	p = gateTo(t, proxy.Upstream{Servers: []*url.URL{target, alive}}, proxy.Config{})
	for range 10 {
		if w := ask(p, getRequest()); w.Body.String() != "plain" {
			t.Errorf("got %d %s", w.Code, w.Body)
		}
	}
}

// A server that speaks no HTTP/2 where it should is an upstream that fails.
func TestH2C_UpstreamWithHTTP1(t *testing.T) {
	server := serve(t, named("x"))
	p := gateTo(t, proxy.Upstream{Servers: []*url.URL{{Scheme: "h2c", Host: strings.TrimPrefix(server, "http://")}}}, proxy.Config{})
	w := ask(p, getRequest())
	wantProblem(t, w.Result(), w.Body.String(), 502)
}

// A vanishing connection loses its peer: written data goes nowhere.
type vanishing struct {
	net.Conn
	gone *atomic.Bool
}

func (v vanishing) Write(p []byte) (int, error) {
	if v.gone.Load() {
		return len(p), nil
	}
	return v.Conn.Write(p)
}

// A dead HTTP/2 connection is abandoned long before the response timeout, and the next request gets a new one.
func TestH2C_DeadConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &pipes{conns: make(chan net.Conn), closed: make(chan struct{})}
		server := &http.Server{Handler: named("x"), Protocols: protocols(true)}
		go server.Serve(l)
		defer server.Close()
		gone := new(atomic.Bool)
		dial := func(context.Context, string, string) (net.Conn, error) {
			near, far := net.Pipe()
			l.conns <- far
			conn := vanishing{near, gone}
			gone = new(atomic.Bool) // the next one is another
			return conn, nil
		}
		first := gone
		p := gateTo(t, proxy.Upstream{Servers: []*url.URL{{Scheme: "h2c", Host: "a:80"}}, HeaderTimeout: time.Hour}, proxy.Config{Dial: dial})
		defer p.Close()
		if w := ask(p, getRequest()); w.Code != 200 {
			t.Fatalf("got %d %s", w.Code, w.Body)
		}
		first.Store(true)
		begin := time.Now()
		w := ask(p, httptest.NewRequest(http.MethodPost, "/", strings.NewReader("x")))
		wantProblem(t, w.Result(), w.Body.String(), 502)
		if took := time.Since(begin); took > time.Minute {
			t.Errorf("it took %v to find out", took)
		}
		if w := ask(p, getRequest()); w.Code != 200 {
			t.Errorf("the next request: got %d %s", w.Code, w.Body)
		}
	})
}

// CloseWrite of a client's connection, whatever is around it.
func closeWrite(t *testing.T, conn net.Conn) {
	t.Helper()
	if err := conn.(interface{ CloseWrite() error }).CloseWrite(); err != nil {
		t.Error(err)
	}
}
