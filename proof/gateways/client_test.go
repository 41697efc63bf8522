// SPDX-License-Identifier: Apache-2.0

//go:build linux

package gateways

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/metehq/mete/proof/meted"
)

// An answer is one of the gateway's.
type answer struct {
	status int
	header http.Header
	body   string
}

// rule returns the first limit in RateLimit with its remaining tokens, as in "login 4". It is empty if the
// gateway did not ask mete.
func (a answer) rule() string {
	item, _, _ := strings.Cut(a.header.Get("RateLimit"), ",")
	name, rest, _ := strings.Cut(item, ";r=")
	left, _, _ := strings.Cut(rest, ";")
	return strings.TrimSpace(strings.Trim(name, `"`) + " " + left)
}

// clients allocates local addresses, one per client.
type clients struct{ next netip.Addr }

func newClients() *clients { return &clients{netip.MustParseAddr("127.9.0.1")} }

func (c *clients) another() netip.Addr {
	a := c.next
	c.next = a.Next()
	return a
}

// dial connects to the gateway as a client.
func (s *site) dial(t *testing.T, from netip.Addr) net.Conn {
	t.Helper()
	dialer := net.Dialer{Timeout: meted.Patience, LocalAddr: net.TCPAddrFromAddrPort(netip.AddrPortFrom(from, 0))}
	conn, err := dialer.Dial("tcp", s.addr)
	if err != nil {
		t.Fatal(err)
	}
	if err := conn.SetDeadline(time.Now().Add(2 * meted.Patience)); err != nil {
		t.Fatal(err)
	}
	return conn
}

// try sends a raw request and reports whether there was an answer. A gateway may close the connection of
// invalid HTTP.
func (s *site) try(t *testing.T, from netip.Addr, request string) (a answer, ok bool) {
	t.Helper()
	conn := s.dial(t, from)
	defer conn.Close()
	go io.WriteString(conn, request) // a gateway may answer before it has read everything
	method, _, _ := strings.Cut(request, " ")
	in := bufio.NewReader(conn)
	response, err := http.ReadResponse(in, &http.Request{Method: method})
	for err == nil && response.StatusCode == http.StatusContinue {
		response, err = http.ReadResponse(in, &http.Request{Method: method})
	}
	if err != nil {
		return answer{}, false
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return answer{}, false
	}
	return answer{response.StatusCode, response.Header, string(body)}, true
}

// send is try of what must be answered.
func (s *site) send(t *testing.T, from netip.Addr, request string) answer {
	t.Helper()
	a, ok := s.try(t, from, request)
	if !ok {
		t.Fatalf("%.60q: no answer", request)
	}
	return a
}

// get and login are the two requests that the policy tells apart.
const (
	get   = "GET /page HTTP/1.1\r\nHost: shop.example\r\n\r\n"
	login = "POST /login HTTP/1.1\r\nHost: shop.example\r\nContent-Length: 3\r\n\r\na=1"
)
