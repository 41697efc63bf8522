// SPDX-License-Identifier: Apache-2.0

//go:build linux

package gateways

import (
	"net/netip"
	"strings"
	"testing"
)

// loginFor is a login as a load balancer passes it on, of a client that sent an
// X-Forwarded-For of its own. HAProxy is told in the PROXY protocol.
func (s *site) loginFor(t *testing.T, balancer netip.Addr, client, sent string) answer {
	t.Helper()
	fields := "POST /login HTTP/1.1\r\nHost: shop.example\r\nX-Forwarded-Host: free.example\r\nX-Forwarded-For: " + sent
	rest := "\r\nContent-Length: 3\r\n\r\na=1"
	if s.name == "haproxy" {
		return s.send(t, balancer, "PROXY TCP4 "+client+" 127.0.0.1 4711 80\r\n"+fields+rest)
	}
	return s.send(t, balancer, fields+", "+client+rest)
}

// Behind a load balancer, the balancer names the client. Headers that the client sends have no effect.
func TestBehindBalancer(t *testing.T) {
	each(t, func(t *testing.T, k kind) {
		s, from := start(t, k, setup{behind: true, policy: freeHost}), newClients()
		balancer, stranger := from.another(), from.another()
		for i, sent := range []string{"192.0.2.1", "192.0.2.2, 127.9.0.1", "unknown", `"`} {
			if a := s.loginFor(t, balancer, "198.51.100.7", sent); a.status != 200 || a.rule() != "login "+string("4321"[i]) {
				t.Errorf("with X-Forwarded-For: %s: got %d with %v, want another login of the same client", sent, a.status, a.header)
			}
		}
		if a := s.loginFor(t, balancer, "198.51.100.8", "198.51.100.7"); a.status != 200 || a.rule() != "login 4" {
			t.Errorf("another client: got %d with %v, want its first login", a.status, a.header)
		}
		if s.name == "haproxy" {
			return // the PROXY protocol is always trusted, so only the balancer may reach this port
		}
		for _, want := range []string{"login 4", "login 3"} {
			if a := s.loginFor(t, stranger, "198.51.100.9"+want[6:], "192.0.2.1"); a.status != 200 || a.rule() != want {
				t.Errorf("around the balancer: got %d with %v, want %s of the stranger's own", a.status, a.header, want)
			}
		}
	})
}

// If mete knows the number of proxies instead of their addresses, it still trusts the gateway.
func TestTrustedHops(t *testing.T) {
	each(t, func(t *testing.T, k kind) {
		s := start(t, k, setup{mete: []edit{{"trusted_proxies: [127.0.0.1]", "trusted_hops: 1"}}})
		client := newClients().another()
		for i, sent := range []string{"192.0.2.1", "192.0.2.2, 127.0.0.1", "192.0.2.3,"} {
			request := strings.Replace(login, "\r\n\r\n", "\r\nX-Forwarded-For: "+sent+"\r\n\r\n", 1)
			if a := s.send(t, client, request); a.status != 200 || a.rule() != "login "+string("432"[i]) {
				t.Errorf("with X-Forwarded-For: %s: got %d with %v, want another login of the same client", sent, a.status, a.header)
			}
		}
	})
}
