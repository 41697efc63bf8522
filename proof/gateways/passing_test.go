// SPDX-License-Identifier: Apache-2.0

//go:build linux

package gateways

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
)

// Checked requests arrive unchanged: with bodies, without a body, with long targets.
func TestPassing(t *testing.T) {
	each(t, func(t *testing.T, k kind) {
		s, from := start(t, k, setup{}), newClients()
		long := "/page?q=" + strings.Repeat("a", 4000)
		for _, tt := range []struct{ request, want string }{
			{get, "GET /page 0"},
			{"HEAD /page HTTP/1.1\r\nHost: a.example\r\n\r\n", "HEAD /page 0"},
			{"OPTIONS /page HTTP/1.1\r\nHost: a.example\r\n\r\n", "OPTIONS /page 0"},
			{"DELETE /page HTTP/1.1\r\nHost: a.example\r\n\r\n", "DELETE /page 0"},
			{"PROPFIND /page HTTP/1.1\r\nHost: a.example\r\nDepth: 1\r\n\r\n", "PROPFIND /page 0"},
			{"GET " + long + " HTTP/1.1\r\nHost: a.example\r\n\r\n", "GET " + long + " 0"},
			{"GET /a%20b/%C3%A9?x=%2F HTTP/1.1\r\nHost: a.example\r\n\r\n", "GET /a%20b/%C3%A9?x=%2F 0"},
			{login, "POST /login 3"},
			{"PUT /page HTTP/1.1\r\nHost: a.example\r\nContent-Length: 300000\r\n\r\n" + strings.Repeat("x", 300000), "PUT /page 300000"},
			{"POST /page HTTP/1.1\r\nHost: a.example\r\nContent-Length: 0\r\n\r\n", "POST /page 0"},
			{"POST /page HTTP/1.1\r\nHost: a.example\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n", "POST /page 11"},
			{"POST /page HTTP/1.1\r\nHost: a.example\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\na=1", "POST /page 3"},
		} {
			a := s.send(t, from.another(), tt.request)
			if a.status != 200 || a.rule() == "" || s.service.last() != tt.want {
				t.Errorf("%.60q: got %d with %v, and the service saw %.60q, want 200 and %.60q", tt.request, a.status, a.header, s.service.last(), tt.want)
			}
		}
	})
}

// The gateway checks each request of a connection, without its body. If the gateway sent the body to mete,
// mete would read it as the next request.
func TestPassing_OneConnection(t *testing.T) {
	each(t, func(t *testing.T, k kind) {
		s, client := start(t, k, setup{}), newClients().another()
		conn := s.dial(t, client)
		defer conn.Close()
		in := bufio.NewReader(conn)
		statuses := ""
		for range 7 {
			if _, err := io.WriteString(conn, login); err != nil {
				t.Fatal(err)
			}
			response, err := http.ReadResponse(in, nil)
			if err != nil {
				t.Fatalf("after %s: %v", statuses, err)
			}
			if _, err := io.Copy(io.Discard, response.Body); err != nil {
				t.Fatal(err)
			}
			statuses += fmt.Sprint(response.StatusCode, " ")
			if response.Close {
				conn.Close()
				conn = s.dial(t, client)
				in = bufio.NewReader(conn)
			}
		}
		conn.Close()
		if statuses != "200 200 200 200 200 429 429 " || s.service.requests() != 5 {
			t.Errorf("got %sand %d requests for the service, want 5 and 2 that were denied", statuses, s.service.requests())
		}
	})
}

// A WebSocket is asked about once, at its beginning.
func TestPassing_WebSocket(t *testing.T) {
	each(t, func(t *testing.T, k kind) {
		s, from := start(t, k, setup{}), newClients()
		client := from.another()
		conn := s.dial(t, client)
		defer conn.Close()
		io.WriteString(conn, "GET /socket HTTP/1.1\r\nHost: a.example\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"+
			"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n")
		in := bufio.NewReader(conn)
		response, err := http.ReadResponse(in, nil)
		if err != nil || response.StatusCode != http.StatusSwitchingProtocols {
			t.Fatalf("got %v, %v, want 101", response, err)
		}
		io.WriteString(conn, "hello\n")
		if line, err := in.ReadString('\n'); line != "echo hello\n" {
			t.Errorf("got %q, %v, want an echo", line, err)
		}
		if a := s.send(t, client, get); a.rule() != "address 98" {
			t.Errorf("the next request: got %d with %v, want address 98 to be left", a.status, a.header)
		}
	})
}

// The gateway rejects other protocols: requests within h2c would bypass the check.
func TestPassing_NoOtherUpgrade(t *testing.T) {
	each(t, func(t *testing.T, k kind) {
		s, from := start(t, k, setup{}), newClients()
		for _, upgrade := range []string{"h2c", "H2C", "websocket, h2c", "h2c, websocket", "TLS/1.0", "x", "websocket\r\nUpgrade: h2c", "h2c\r\nUpgrade: websocket"} {
			a, ok := s.try(t, from.another(), "GET /page HTTP/1.1\r\nHost: a.example\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: "+upgrade+
				"\r\nHTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA\r\n\r\n")
			if got := s.service.last(); ok && a.status < 400 && got != "GET /page 0" && got != "UPGRADE /page" {
				t.Errorf("Upgrade: %s: the service saw %q, want a plain request or a WebSocket", upgrade, got)
			}
		}
	})
}
