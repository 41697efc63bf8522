// SPDX-License-Identifier: Apache-2.0

package proxy_test

import (
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"strings"
	"testing"

	"github.com/metehq/mete/httplimit"
	"github.com/metehq/mete/proxy"
)

var update = flag.Bool("update", false, "write the table of header fields in doc/proxy.md anew")

const (
	fieldsPage  = "../doc/proxy.md"
	fieldsBegin = "go test ./proxy -run TestFields_Doc -update -->\n"
	fieldsEnd   = "<!-- end of fields -->"
)

// The page has the table of the code.
func TestFields_Doc(t *testing.T) {
	text, err := os.ReadFile(fieldsPage)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(text), fieldsBegin)
	got, after, ok2 := strings.Cut(rest, fieldsEnd)
	if !ok || !ok2 {
		t.Fatalf("%s has no place for the table of header fields", fieldsPage)
	}
	var b strings.Builder
	b.WriteString("\n| header field of a request | on its way to the upstream | why |\n|---|---|---|\n")
	for _, row := range proxy.FieldRows {
		label := row.Label
		if label == "" {
			label = "`" + strings.Join(row.Names, "`, `") + "`"
		}
		fmt.Fprintf(&b, "| %s | %v | %s |\n", label, row.Action, row.Why)
	}
	want := b.String() + "\n"
	if *update {
		if err := os.WriteFile(fieldsPage, []byte(before+fieldsBegin+want+fieldsEnd+after), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if got != want {
		t.Errorf("%s is not as the code is: go test ./proxy -run TestFields_Doc -update", fieldsPage)
	}
}

var loopback = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}

// trusting returns the settings of a middleware that trusts its clients, or no client.
func trusting(trusted bool) httplimit.Config {
	if trusted {
		return httplimit.Config{TrustedProxies: loopback}
	}
	return httplimit.Config{}
}

// speak returns clients of a proxy that speak HTTP/1 and HTTP/2, by protocol.
func speak(t *testing.T, p *proxy.Proxy) map[string]func(*http.Request) (*http.Response, error) {
	t.Helper()
	doors := map[string]func(*http.Request) (*http.Response, error){}
	for _, h2 := range []bool{false, true} {
		front := httptest.NewUnstartedServer(p)
		front.Config.Protocols = protocols(h2)
		front.Start()
		t.Cleanup(front.Close)
		client := &http.Transport{Protocols: protocols(h2)}
		t.Cleanup(client.CloseIdleConnections)
		address := front.Listener.Addr().String()
		doors[map[bool]string{false: "HTTP/1", true: "HTTP/2"}[h2]] = func(r *http.Request) (*http.Response, error) {
			r.URL.Host = address
			resp, err := client.RoundTrip(r)
			if err == nil {
				resp.Body.Close()
			}
			return resp, err
		}
	}
	return doors
}

// Each field of the table gets the documented action, over HTTP/1 and HTTP/2, from clients and from trusted
// proxies.
func TestFields_Fates(t *testing.T) {
	const (
		sent        = "the client's own"
		passes      = "passes"
		removed     = "removed"
		written     = "replaced"
		fromTrusted = "removed unless a trusted proxy sent it"
	)
	fates := map[string]string{}
	for fate, names := range map[string][]string{
		removed: {"X_Real_IP", "X_Forwarded_For", "X.Real.IP", "X_Api_Key", "SSL_Client_Verify", "X~Y"},
		fromTrusted: {"X-Forwarded", "X-Forwarded-Port", "X-Forwarded-Prefix", "X-Forwarded-Server", "X-Forwarded-Ssl", "X-Forwarded-Scheme",
			"X-Forwarded-User", "X-Original-URL", "X-Original-URI", "X-Original-Host"},
		passes: {"X-Api-Key", "X-Request-Id", "Authorization", "Accept", "Remote-User"},
	} {
		for _, name := range names {
			fates[name] = fate
		}
	}
	for _, row := range proxy.FieldRows {
		for _, name := range row.Names {
			fates[strings.Replace(name, "*", "-Any", 1)] = row.Action.String()
		}
	}
	seen := make(chan http.Header, 1)
	upstream := serve(t, func(w http.ResponseWriter, r *http.Request) { seen <- r.Header })
	for _, trusted := range []bool{false, true} {
		for protocol, send := range speak(t, newProxy(t, upstream, middleware(t, 10_000, trusting(trusted)), proxy.Config{})) {
			for name, fate := range fates {
				own := http.CanonicalHeaderKey(name)
				switch own {
				case "Content-Length", "Transfer-Encoding", "Trailer":
					continue // see TestSmuggling and TestFields_Trailers
				case "Connection", "Upgrade", "Te", "Keep-Alive", "Proxy-Connection":
					if protocol == "HTTP/2" {
						continue // which has none
					}
				}
				r := clientRequest()
				r.Header = http.Header{name: {sent}}
				resp, err := send(r)
				if err != nil || resp.StatusCode != 200 {
					t.Fatalf("%s by %s: %v (%v)", name, protocol, resp, err)
				}
				got := receive(t, seen, name)[own]
				passed := len(got) == 1 && got[0] == sent
				var want bool
				switch fate {
				case passes:
					want = true
				case fromTrusted:
					want = trusted
				case written: // a trusted proxy's word on host and scheme stays
					want = trusted && (name == "X-Forwarded-Host" || name == "X-Forwarded-Proto")
				}
				if passed != want || fate != written && !want && len(got) > 0 {
					t.Errorf("%s by %s, from a trusted proxy %v: the upstream was sent %q, and it is to be %s", name, protocol, trusted, got, fate)
				}
			}
		}
	}
}

// clientRequest is a request for a transport.
func clientRequest() *http.Request {
	r := getRequest()
	r.URL.Scheme, r.RequestURI = "http", ""
	return r
}

// Names with "_" are dropped, passed or refused, as header fields and as trailers. None
// that passes is read as a field that the proxy writes or removes.
func TestFields_Underscores(t *testing.T) {
	seen := make(chan *http.Request, 1)
	upstream := serve(t, func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		seen <- r
	})
	for _, tt := range []struct {
		setting string
		status  int
		passes  bool
	}{{"", 200, false}, {"drop", 200, false}, {"pass", 200, true}, {"refuse", 400, false}} {
		p := newProxy(t, upstream, middleware(t, 10_000, httplimit.Config{}), proxy.Config{UnderscoresInHeaders: tt.setting})
		for protocol, send := range speak(t, p) {
			r := clientRequest()
			r.Header = http.Header{"X_Api_Key": {"real"}, "X.Api.Key": {"real"}, "X_Forwarded_For": {"6.6.6.6"}, "X_Real_IP": {"6.6.6.6"}, "X-Forwarded_Port": {"1"}, "X_HTTP_Method_Override": {"DELETE"}}
			resp, err := send(r)
			if err != nil || resp.StatusCode != tt.status {
				t.Fatalf("%q by %s: got %v (%v), want %d", tt.setting, protocol, resp, err, tt.status)
			}
			if tt.status == 200 {
				h := receive(t, seen, "request").Header
				for _, name := range []string{"X_api_key", "X.api.key"} {
					if passed := len(h[name]) > 0; passed != tt.passes {
						t.Errorf("%q by %s: %s passed: %v", tt.setting, protocol, name, passed)
					}
				}
				for _, name := range []string{"X_forwarded_for", "X_real_ip", "X-Forwarded_port", "X_http_method_override"} {
					if len(h[name]) > 0 {
						t.Errorf("%q by %s: %s passed", tt.setting, protocol, name)
					}
				}
			}

			r = clientRequest()
			r.Method, r.Body, r.ContentLength = http.MethodPost, io.NopCloser(strings.NewReader("x")), -1
			r.Trailer = http.Header{"X_api_key": {"real"}, "X-Real-Ip": {"6.6.6.6"}, "X_forwarded_for": {"6.6.6.6"}, "X-Sum": {"1"}}
			if resp, err = send(r); err != nil || resp.StatusCode != tt.status {
				t.Fatalf("%q by %s, in a trailer: got %v (%v), want %d", tt.setting, protocol, resp, err, tt.status)
			}
			if tt.status != 200 {
				continue
			}
			trailer := receive(t, seen, "request").Trailer
			if passed := trailer.Get("X_api_key") != ""; passed != tt.passes || trailer.Get("X-Sum") != "1" || len(trailer["X-Real-Ip"]) > 0 || len(trailer["X_forwarded_for"]) > 0 {
				t.Errorf("%q by %s: the trailer was %v", tt.setting, protocol, trailer)
			}
		}
	}
	target, _ := url.Parse(upstream)
	if _, err := proxy.New(target, middleware(t, 1, httplimit.Config{}), proxy.Config{UnderscoresInHeaders: "fold"}); err == nil || !strings.Contains(err.Error(), `"fold": must be drop, pass or refuse`) {
		t.Errorf("a setting that there is not: got error %v", err)
	}
}

// Clients cannot write the trusted field, and cannot remove it with Connection.
func TestFields_ForwardedHeader(t *testing.T) {
	seen := make(chan http.Header, 1)
	upstream := serve(t, func(w http.ResponseWriter, r *http.Request) { seen <- r.Header })
	for _, tt := range []struct {
		trusted []netip.Prefix
		want    string
	}{{[]netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}, ""}, {loopback, "6.6.6.6"}} {
		front := serveProxy(t, upstream, middleware(t, 5, httplimit.Config{TrustedProxies: tt.trusted, ForwardedHeader: "X-Edge-Client"}), proxy.Config{})
		get(t, front, "X-Edge-Client", "6.6.6.6", "X-Real-IP", "6.6.6.6", "Connection", "X-Real-IP, X-Edge-Client")
		h := receive(t, seen, "request")
		for _, name := range []string{"X-Edge-Client", "X-Real-Ip"} {
			if got := h.Get(name); got != tt.want {
				t.Errorf("trusted %v: the upstream was sent %s %q, want %q", tt.trusted, name, got, tt.want)
			}
		}
	}
}
