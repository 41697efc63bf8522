// SPDX-License-Identifier: Apache-2.0

package proxy_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/metehq/mete/httplimit"
	"github.com/metehq/mete/proxy"
)

func TestDeniedDoesNotReachTheUpstream(t *testing.T) {
	var reached atomic.Int64
	front := start(t, serve(t, func(w http.ResponseWriter, r *http.Request) {
		reached.Add(1)
		io.WriteString(w, "hello")
	}), 2, proxy.Config{})
	for i, want := range []int{200, 200, 429, 429} {
		resp, body := get(t, front)
		if resp.StatusCode != want || want == 200 && body != "hello" {
			t.Errorf("request %d of 2: got %d %q, want %d", i+1, resp.StatusCode, body, want)
		}
	}
	if got := reached.Load(); got != 2 {
		t.Errorf("the upstream saw %d requests, want 2", got)
	}
}

func TestOwnFieldsWin(t *testing.T) {
	for _, informational := range []bool{false, true} {
		// Fields that only mete may set, and fields that the upstream omits, are absent.
		front := start(t, serve(t, func(w http.ResponseWriter, r *http.Request) {
			if informational { // after which ReverseProxy clears the header
				w.Header().Set("Link", "</a>; rel=preload")
				w.WriteHeader(http.StatusEarlyHints)
			}
			w.Header().Set("RateLimit", `"theirs";r=9;t=9`)
			w.Header().Set("RateLimit-Limit", "999")
			w.Header().Set("X-RateLimit-Limit", "999")
			w.Header().Set("X-RateLimit-Reason", "theirs")
			w.Header().Set("Vary", "Accept")
			w.Header()["Content-Type"] = nil
			io.WriteString(w, "plain text, one would think")
		}), 5, proxy.Config{})
		resp, _ := get(t, front)
		for name, want := range map[string]string{
			"RateLimit": `"all";r=4;t=4`, "RateLimit-Policy": `"all";q=5;w=5`, "RateLimit-Limit": "5", "RateLimit-Remaining": "4",
			"X-RateLimit-Limit": "999", "Vary": "Accept", // ours are not of these names
		} {
			if got := resp.Header.Values(name); len(got) != 1 || got[0] != want {
				t.Errorf("early hints %v: got %s %q, want %q alone", informational, name, got, want)
			}
		}
		for _, name := range []string{"X-RateLimit-Reason", "Content-Type"} {
			if got := resp.Header.Values(name); len(got) > 0 {
				t.Errorf("early hints %v: got %s %q, want none", informational, name, got)
			}
		}
	}
}

func TestForwardedHeaders(t *testing.T) {
	seen := make(chan *http.Request, 1)
	upstream := serve(t, func(w http.ResponseWriter, r *http.Request) { seen <- r })
	spoof := []string{"Host", "shop.example", "X-Forwarded-For", "6.6.6.6", "X-Forwarded-For", "7.7.7.7", "X-Forwarded-Host", "evil.example",
		"X-Forwarded-Proto", "https", "Forwarded", "for=6.6.6.6", "X-Client", "2001:db8::1",
		"Connection", "X-Hop", "X-Hop", "1", "X-Own", "2"}
	loopback := []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}
	for _, tt := range []struct {
		name   string
		config httplimit.Config
		want   map[string]string
	}{
		{"stranger", httplimit.Config{}, map[string]string{
			"X-Forwarded-For": "127.0.0.1", "X-Forwarded-Host": "shop.example", "X-Forwarded-Proto": "http", "Forwarded": ""}},
		{"another proxy is trusted", httplimit.Config{TrustedProxies: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}}, map[string]string{
			"X-Forwarded-For": "127.0.0.1", "X-Forwarded-Host": "shop.example", "X-Forwarded-Proto": "http", "Forwarded": ""}},
		{"trusted", httplimit.Config{TrustedProxies: loopback}, map[string]string{
			"X-Forwarded-For": "6.6.6.6, 7.7.7.7, 127.0.0.1", "X-Forwarded-Host": "evil.example", "X-Forwarded-Proto": "https",
			"Forwarded": "for=7.7.7.7, for=127.0.0.1"}},
		{"trusted in Forwarded", httplimit.Config{TrustedProxies: loopback, ForwardedHeader: "forwarded"}, map[string]string{
			"X-Forwarded-For": "6.6.6.6, 127.0.0.1", "Forwarded": "for=6.6.6.6, for=127.0.0.1"}},
		{"trusted in another field", httplimit.Config{TrustedProxies: loopback, ForwardedHeader: "x-client"}, map[string]string{
			"X-Forwarded-For": "2001:db8::1, 127.0.0.1", "Forwarded": `for="[2001:db8::1]", for=127.0.0.1`, "X-Client": "2001:db8::1"}},
		{"trusted in one that is not there", httplimit.Config{TrustedProxies: loopback, ForwardedHeader: "X-Real-Ip"}, map[string]string{
			"X-Forwarded-For": "127.0.0.1", "Forwarded": "for=127.0.0.1"}},
		{"one hop is trusted", httplimit.Config{TrustedHops: 1}, map[string]string{
			"X-Forwarded-For": "6.6.6.6, 7.7.7.7, 127.0.0.1"}},
	} {
		resp, _ := get(t, serveProxy(t, upstream, middleware(t, 5, tt.config), proxy.Config{}), spoof...)
		r := receive(t, seen, "request to the upstream")
		for name, want := range tt.want {
			if got := strings.Join(r.Header.Values(name), " + "); got != want {
				t.Errorf("%s: got %s %q, want %q", tt.name, name, got, want)
			}
		}
		if r.Host != "shop.example" || r.Header.Get("X-Hop") != "" || r.Header.Get("X-Own") != "2" || resp.StatusCode != 200 {
			t.Errorf("%s: got host %q, X-Hop %q, X-Own %q, status %d", tt.name, r.Host, r.Header.Get("X-Hop"), r.Header.Get("X-Own"), resp.StatusCode)
		}
	}
}

// A client cannot hide its address by naming the field in Connection.
func TestForwardedHeader_CalledHopByHop(t *testing.T) {
	seen := make(chan string, 1)
	upstream := serve(t, func(w http.ResponseWriter, r *http.Request) { seen <- r.Header.Get("X-Forwarded-For") })
	for _, field := range []string{"X-Forwarded-For", "X-Client"} {
		mw := middleware(t, 5, httplimit.Config{TrustedHops: 1, ForwardedHeader: field})
		get(t, serveProxy(t, upstream, mw, proxy.Config{}), "Connection", "close, "+field, field, "6.6.6.6")
		if got := receive(t, seen, "request"); got != "6.6.6.6, 127.0.0.1" {
			t.Errorf("%s: the upstream was told %q", field, got)
		}
	}
}

func TestRewriteHost(t *testing.T) {
	seen := make(chan string, 1)
	upstream := serve(t, func(w http.ResponseWriter, r *http.Request) { seen <- r.Host })
	get(t, start(t, upstream, 5, proxy.Config{RewriteHost: new(true)}), "Host", "shop.example")
	if got, want := receive(t, seen, "host"), strings.TrimPrefix(upstream, "http://"); got != want {
		t.Errorf("got host %q, want the upstream's own %q", got, want)
	}
}

// A public server knows only its own name. Servers within a network often need the client's.
func TestRewriteHost_Default(t *testing.T) {
	seen := make(chan *http.Request, 1)
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { seen <- r }))
	t.Cleanup(server.Close)
	plain := httptest.NewServer(server.Config.Handler)
	t.Cleanup(plain.Close)
	certificates := x509.NewCertPool()
	certificates.AddCert(server.Certificate()) // for example.com and 127.0.0.1
	for _, tt := range []struct {
		to      string
		rewrite *bool
		want    string
	}{
		{"https://example.com", nil, "example.com"},
		{"https://example.com", new(false), "shop.example"},
		{"https://127.0.0.1", nil, "shop.example"},
		{"https://127.0.0.1", new(true), "127.0.0.1"},
		{"http://example.com", nil, "shop.example"},
	} {
		to, err := url.Parse(tt.to)
		if err != nil {
			t.Fatal(err)
		}
		dial := func(ctx context.Context, network, address string) (net.Conn, error) {
			target := server
			if to.Scheme == "http" {
				target = plain
			}
			return new(net.Dialer).DialContext(ctx, network, target.Listener.Addr().String())
		}
		p, err := proxy.NewRouted([]proxy.Upstream{{Name: "u", Servers: []*url.URL{to}, TLS: &tls.Config{RootCAs: certificates}}},
			[]proxy.Route{{Upstream: "u"}}, middleware(t, 5, httplimit.Config{}), proxy.Config{RewriteHost: tt.rewrite, Dial: dial})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { p.Close() })
		front := httptest.NewServer(p)
		t.Cleanup(front.Close)
		get(t, front.URL, "Host", "shop.example")
		got := receive(t, seen, "request")
		if got.Host != tt.want || got.Header.Get("X-Forwarded-Host") != "shop.example" {
			t.Errorf("%s, rewrite %v: Host %q and X-Forwarded-Host %q, want Host %q", to, tt.rewrite, got.Host, got.Header.Get("X-Forwarded-Host"), tt.want)
		}
	}
}

func TestUpstreamSeesThePathThatWasMatched(t *testing.T) {
	seen := make(chan string, 1)
	upstream := serve(t, func(w http.ResponseWriter, r *http.Request) { seen <- r.RequestURI })
	front, below := start(t, upstream, 100, proxy.Config{}), start(t, upstream+"/app/", 100, proxy.Config{})
	for sent, want := range map[string]string{
		"/":                     "/",
		"/a/b/?x=1&x=2":         "/a/b/?x=1&x=2",
		"//a///b":               "/a/b",
		"/a/../b/./c/":          "/b/c/",
		"/a/%2e%2e/b":           "/b",
		"/../../etc":            "/etc",
		"/group%2Fproject/%20x": "/group%2Fproject/%20x", // nothing to resolve
		"/a%2F..%2Fb":           "/b",
		"/a?x=1;y=2&z=3":        "/a?z=3",
		"/a;x=1/b%3by":          "/a;x=1/b%3by", // parameters are the upstream's
		"/a;x=1/..;y/b;z":       "/b;z",
		"/a%5Cb":                "/a%5Cb",
		"/a/..%5cb":             "/b",
	} {
		// The client would resolve some of these itself, so the target is opaque.
		for base, prefix := range map[string]string{front: "", below: "/app"} {
			host := strings.TrimPrefix(base, "http://")
			path, query, _ := strings.Cut(sent, "?")
			req := &http.Request{Method: "GET", URL: &url.URL{Scheme: "http", Host: host, Opaque: "//" + host + path, RawQuery: query}, Header: http.Header{}}
			resp, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			if got := receive(t, seen, sent); got != prefix+want {
				t.Errorf("%s: the upstream was asked for %q, want %q", sent, got, prefix+want)
			}
		}
	}
}

func TestNew_RefusesBadConfig(t *testing.T) {
	mw := middleware(t, 1, httplimit.Config{})
	good, _ := url.Parse("http://127.0.0.1:3000")
	if _, err := proxy.New(good, nil, proxy.Config{}); err == nil {
		t.Error("no middleware: got no error")
	}
	if _, err := proxy.New(nil, mw, proxy.Config{}); err == nil {
		t.Error("no upstream: got no error")
	}
	for _, text := range []string{"127.0.0.1:3000", "/x", "ftp://x", "http://", "http://u:secret@x", "http://x?q=1", "http:opaque"} {
		u, err := url.Parse(text)
		if err != nil {
			u = &url.URL{Opaque: text}
		}
		if _, err := proxy.New(u, mw, proxy.Config{}); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("upstream %q: got error %v, want one without secrets", text, err)
		}
	}
	for _, config := range []proxy.Config{{DialTimeout: -1}, {MaxBodyBytes: -1}} {
		if _, err := proxy.New(good, mw, config); err == nil {
			t.Errorf("%+v: got no error", config)
		}
	}
	_, err := proxy.New(nil, nil, proxy.Config{DialTimeout: -1})
	for _, want := range []string{"upstream is required", "middleware is required", "must not be negative"} {
		if err == nil || !strings.HasPrefix(err.Error(), "proxy: new: ") || !strings.Contains(err.Error(), want) {
			t.Errorf("all at once: got error %v, want one of proxy that says %q", err, want)
		}
	}
}

// wantProblem fails t unless the answer is a problem of that status.
func wantProblem(t *testing.T, resp *http.Response, body string, status int) {
	t.Helper()
	var p struct {
		Title  string
		Status int
		Detail string
	}
	if err := json.Unmarshal([]byte(body), &p); err != nil || resp.StatusCode != status || p.Status != status ||
		p.Title != http.StatusText(status) || p.Detail == "" || resp.Header.Get("Content-Type") != "application/problem+json" {
		t.Errorf("got %d %s (%v), want a problem of status %d", resp.StatusCode, body, err, status)
	}
}

func TestHeadHasNoBody(t *testing.T) {
	dead := httptest.NewServer(nil)
	dead.Close()
	resp, err := http.Head(start(t, dead.URL, 5, proxy.Config{}))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != 502 {
		t.Errorf("HEAD of a dead upstream: got %d, want 502", resp.StatusCode)
	}
}
