// SPDX-License-Identifier: Apache-2.0

//go:build linux

package gateways

import (
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"

	"github.com/metehq/mete/proof/meted"
)

// Clients that speak HTTP/2 are asked about as the others are.
func TestHTTP2(t *testing.T) {
	each(t, func(t *testing.T, k kind) {
		s, from := start(t, k, setup{http2: true}), newClients()
		client := s.http2Client(from.another())
		for i := range 7 {
			request, err := http.NewRequest(http.MethodPost, "http://"+s.addr+"/login", strings.NewReader("a=1"))
			if err != nil {
				t.Fatal(err)
			}
			request.Header.Set("X-Original-URI", "/page")
			request.Header.Set("X-Forwarded-Uri", "/page")
			request.Header.Set("X-Forwarded-For", "192.0.2.66")
			response, err := client.Do(request)
			if err != nil {
				t.Fatal(err)
			}
			body, err := io.ReadAll(response.Body)
			response.Body.Close()
			if err != nil || response.ProtoMajor != 2 {
				t.Fatalf("got %s and %v, want HTTP/2", response.Proto, err)
			}
			a := answer{response.StatusCode, response.Header, string(body)}
			switch {
			case i < 5 && (a.status != 200 || s.service.last() != "POST /login 3"):
				t.Errorf("login %d: got %d with %v, and the service saw %q, want 200", i, a.status, a.header, s.service.last())
			case i >= 5 && (a.status != 429 || a.header.Get("Retry-After") == ""):
				t.Errorf("login %d: got %d with %v, want 429", i, a.status, a.header)
			}
			if !strings.HasPrefix(a.rule(), "login ") {
				t.Errorf("login %d: got %v, want rule login", i, a.header)
			}
		}
	})
}

// http2Client returns a client that speaks HTTP/2 without asking first.
func (s *site) http2Client(from netip.Addr) *http.Client {
	protocols := new(http.Protocols)
	protocols.SetUnencryptedHTTP2(true)
	dialer := net.Dialer{Timeout: meted.Patience, LocalAddr: net.TCPAddrFromAddrPort(netip.AddrPortFrom(from, 0))}
	return &http.Client{
		Timeout:   2 * meted.Patience,
		Transport: &http.Transport{Protocols: protocols, DialContext: dialer.DialContext},
	}
}
