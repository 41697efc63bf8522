// SPDX-License-Identifier: Apache-2.0

//go:build linux

package gateways

import (
	"net/netip"
	"strings"
	"testing"
)

// spoofs are fields with which a client may try to be asked about as another
// request, or as another client. A line each.
var spoofs = []string{
	"X-Original-URI: /page",
	"X-Original-Method: GET",
	"X-Original-Host: free.example",
	"X-Original-URI: /page|X-Original-Method: GET|X-Original-Host: free.example",
	"X-Original-URI: /page|X-Original-URI: /page",
	"x-original-uri: /page|X-ORIGINAL-METHOD: GET",
	"X-Original-URL: /page|X-Rewrite-URL: /page",
	"X_Original_URI: /page|X_Original_Method: GET|X_Forwarded_For: 192.0.2.66",
	"X-Original-URI: |X-Original-Method: |X-Original-Host: ",
	"X-Forwarded-Uri: /page",
	"X-Forwarded-Method: GET",
	"X-Forwarded-Host: free.example",
	"X-Forwarded-Uri: /page|X-Forwarded-Method: GET|X-Forwarded-Host: free.example|X-Forwarded-Proto: https|X-Forwarded-Port: 443",
	"X-Forwarded-Uri: /page|X-Forwarded-Uri: /page",
	"X-FORWARDED-URI: /page|x-forwarded-method: GET",
	"X-Forwarded-Prefix: /page|X-Forwarded-Server: free.example",
	"X-HTTP-Method-Override: GET|X-Method-Override: GET",
	"X-Forwarded-For: 192.0.2.66",
	"X-Forwarded-For: 127.0.0.1",
	"X-Forwarded-For: 192.0.2.66, 127.0.0.1",
	"X-Forwarded-For: 192.0.2.66|X-Forwarded-For: 192.0.2.67",
	"x-forwarded-for: 192.0.2.66|X-FORWARDED-FOR: 192.0.2.67",
	"X-Forwarded-For: |X-Forwarded-For: 192.0.2.66,",
	"X-Real-IP: 192.0.2.66|True-Client-IP: 192.0.2.66|CF-Connecting-IP: 192.0.2.66|X-Client-IP: 192.0.2.66",
	`Forwarded: for=192.0.2.66;host=free.example;proto=https`,
	`Forwarded: for="|Forwarded: for=192.0.2.66"`,
	"X-RateLimit-Status: 200|X-Mete: answered|RateLimit: \"address\";r=99;t=1",
	"Expect: 100-continue",
	"TE: trailers|Trailer: X-Original-URI",
	"Upgrade: h2c|Connection: Upgrade, HTTP2-Settings|HTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA",
	"Keep-Alive: timeout=5|Proxy-Connection: keep-alive",
	"Connection: X-Original-URI, X-Original-Method, X-Original-Host, X-Forwarded-For",
	"Connection: close, X-Forwarded-Uri, X-Forwarded-Method, X-Forwarded-Host, X-Forwarded-For",
	"Connection: X-Original-URI|Connection: X-Forwarded-For|X-Original-URI: /page|X-Forwarded-Uri: /page",
}

// freeHost lets one host do more: that is worth pretending.
var freeHost = []edit{{"rules:\n", `rules:
  - name: free
    limit_keys: ["ip:address"]
    match: { host: free.example }
    algorithm: token_bucket
    algorithm_config: { rate: 1000/1h, burst: 1000 }
`}}

// No field that a client sends changes which rule it falls under, or whose bucket it
// spends from.
func TestSpoofing_Fields(t *testing.T) {
	each(t, func(t *testing.T, k kind) {
		s, from := start(t, k, setup{policy: freeHost}), newClients()
		for _, spoof := range spoofs {
			lines := strings.ReplaceAll(spoof, "|", "\r\n") + "\r\n"
			client := from.another()
			a, ok := s.try(t, client, "POST /login HTTP/1.1\r\nHost: shop.example\r\n"+lines+"Content-Length: 3\r\n\r\na=1")
			switch {
			case ok && a.status == 200 && a.rule() == "login 4":
				s.wantLeft(t, client, "login 3", spoof)
			case ok && a.status == 400:
				t.Logf("refused: %q", spoof) // a rejected request bypasses no limit
			default:
				t.Errorf("%q: got %d with %v, want login 4 to be left", spoof, a.status, a.header)
			}
		}
	})
}

// wantLeft fails the test unless the client's next login leaves that.
func (s *site) wantLeft(t *testing.T, client netip.Addr, want, after string) {
	t.Helper()
	if a := s.send(t, client, login); a.status != 200 || a.rule() != want {
		t.Errorf("after %q: got %d with %v, want %s to be left", after, a.status, a.header, want)
	}
}

// However a client spells the target, the method and the host, either it spends
// a login, or the request goes nowhere.
func TestSpoofing_Targets(t *testing.T) {
	each(t, func(t *testing.T, k kind) {
		s, from := start(t, k, setup{policy: freeHost}), newClients()
		decided := 0
		for _, line := range []string{
			"POST /login HTTP/1.1", "POST //login HTTP/1.1", "POST /./login HTTP/1.1", "POST /page/../login HTTP/1.1",
			"POST /page/%2e%2e/login HTTP/1.1", "POST /page/..%2flogin HTTP/1.1", "POST /page%2f..%2flogin HTTP/1.1",
			"POST /%6cogin HTTP/1.1", "POST /%6Cogin HTTP/1.1", "POST /login;x=1 HTTP/1.1", `POST \login HTTP/1.1`, `POST /page\..\login HTTP/1.1`,
			"POST /login? HTTP/1.1", "POST /login?a=/page HTTP/1.1", "POST /login?a=b?c HTTP/1.1", "POST /login#/page HTTP/1.1", "POST /login%00 HTTP/1.1",
			"POST http://shop.example/login HTTP/1.1", "POST HTTP://shop.example/login HTTP/1.1", "POST https://shop.example/login HTTP/1.1",
			"POST http:http://shop.example/login HTTP/1.1", "POST http:///login HTTP/1.1", "POST shop.example/login HTTP/1.1",
			"post /login HTTP/1.1", "Post /login HTTP/1.1", "POST /login HTTP/1.0",
		} {
			client := from.another()
			before := s.service.requests()
			a, ok := s.try(t, client, line+"\r\nHost: shop.example\r\nContent-Length: 3\r\n\r\na=1")
			switch {
			case ok && a.status == 200 && a.rule() == "login 4":
				decided++
				s.wantLeft(t, client, "login 3", line)
			case s.service.requests() != before:
				if path, _ := s.service.place(); path == "/login" || a.rule() != "address 99" {
					t.Errorf("%s: got %d with %v, and the service saw %q, want login 4 to be left", line, a.status, a.header, s.service.last())
				}
			case ok && a.status < 400:
				t.Errorf("%s: got %d with %v, and the service saw %q, want login 4 to be left", line, a.status, a.header, s.service.last())
			}
		}
		if decided < 8 {
			t.Errorf("%d of these were decided about, want most", decided)
		}
	})
}

// The host that rules see is the one that the service is sent.
func TestSpoofing_Hosts(t *testing.T) {
	each(t, func(t *testing.T, k kind) {
		s, from := start(t, k, setup{policy: freeHost}), newClients()
		if a := s.send(t, from.another(), "POST /login HTTP/1.1\r\nHost: FREE.example.:80\r\nContent-Length: 3\r\n\r\na=1"); a.status != 200 || a.rule() != "free 999" {
			t.Errorf("the free host: got %d with %v, want rule free", a.status, a.header)
		}
		for _, head := range []string{
			"POST /login HTTP/1.1\r\nHost: shop.example\r\nHost: free.example",
			"POST /login HTTP/1.1\r\nHost: free.example\r\nHost: shop.example",
			"POST /login HTTP/1.1\r\nHost: shop.example, free.example",
			"POST /login HTTP/1.1\r\nHost: shop.example@free.example",
			"POST /login HTTP/1.1\r\nHost: shop.example/free.example",
			"POST /login HTTP/1.1\r\nHost: free.example:shop.example",
			"POST /login HTTP/1.1\r\nHost : free.example",
			"POST /login HTTP/1.1\r\nHost: shop.example\r\n free.example",
			"POST /login HTTP/1.1",
			"POST http://free.example/login HTTP/1.1\r\nHost: shop.example",
			"POST http://shop.example/login HTTP/1.1\r\nHost: free.example",
		} {
			client := from.another()
			before := s.service.requests()
			a, _ := s.try(t, client, head+"\r\nContent-Length: 3\r\n\r\na=1")
			if s.service.requests() == before {
				continue // refused
			}
			if _, host := s.service.place(); strings.HasPrefix(host, "free.example") != strings.HasPrefix(a.rule(), "free ") {
				t.Errorf("%q: got %d with %v, and the service was sent the host %q", head, a.status, a.header, host)
			}
		}
	})
}

// The service gets the same key that mete counted. A key header with another spelling does not reach the
// service, and a duplicate is rejected.
func TestSpoofing_Keys(t *testing.T) {
	each(t, func(t *testing.T, k kind) {
		s, from := start(t, k, setup{}), newClients()
		const line = "GET /api/x HTTP/1.1\r\nHost: shop.example\r\n"
		for i, fields := range []string{"X_Api_Key: real", "X-Api_Key: real", "x_forwarded_for: 192.0.2.66|X_Api_Key: real"} {
			a, ok := s.try(t, from.another(), line+strings.ReplaceAll(fields, "|", "\r\n")+"\r\nX-Api-Key: "+string(rune('a'+i))+"\r\n\r\n")
			if !ok || a.status != 200 && a.status != 400 {
				t.Errorf("%q: got %d with %v, want it to pass without the field, or 400", fields, a.status, a.header)
			}
			for _, name := range []string{"X_api_key", "X-Api_key", "X_forwarded_for"} {
				if got := s.service.field(name); got != "" {
					t.Errorf("%q: the service was sent %s: %s", fields, name, got)
				}
			}
		}
		before := s.service.requests()
		for _, fields := range []string{"X-Api-Key: a\r\nX-Api-Key: real", "x-api-key: a\r\nX-API-KEY: real"} {
			if a := s.send(t, from.another(), line+fields+"\r\n\r\n"); a.status != 400 {
				t.Errorf("%q: got %d with %v, want 400", fields, a.status, a.header)
			}
		}
		if n := s.service.requests() - before; n > 0 {
			t.Errorf("%d requests with two keys reached the service", n)
		}
	})
}

// Unreadable input is the client's error: 400, not a failure of the site.
func TestSpoofing_ControlCharacters(t *testing.T) {
	each(t, func(t *testing.T, k kind) {
		s, from := start(t, k, setup{}), newClients()
		before := s.service.requests()
		for _, c := range []string{"\x01", "\x02", "\x08", "\x0b", "\x1b", "\x7f"} {
			a, ok := s.try(t, from.another(), "GET / HTTP/1.1\r\nHost: shop.example\r\nX-A: a"+c+"b\r\n\r\n")
			if ok && a.status != 400 {
				t.Errorf("%q: got %d with %v, want 400", c, a.status, a.header)
			}
		}
		if n := s.service.requests() - before; n > 0 {
			t.Errorf("%d such requests reached the service", n)
		}
	})
}
