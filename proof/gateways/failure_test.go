// SPDX-License-Identifier: Apache-2.0

//go:build linux

package gateways

import (
	"context"
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/metehq/mete/internal/proctest"
	"github.com/metehq/mete/proof/meted"
)

// While mete hangs or is down, requests pass unchanged if the example fails open. If the example fails
// closed, none pass. The gateway always answers, and applies mete's decisions again after the outage.
func TestFailure(t *testing.T) {
	each(t, func(t *testing.T, k kind) {
		for _, closed := range []bool{false, true} {
			t.Run(map[bool]string{false: "open", true: "closed"}[closed], func(t *testing.T) {
				s := start(t, k, setup{closed: closed, hasty: true})
				client := newClients().another()
				s.awaitDecision(t, client)
				s.stop(t)
				s.wantUndecided(t, client, closed, "mete hangs")
				s.mete.Process.Resume()
				s.awaitDecision(t, client)
				s.mete.Process.Kill()
				s.wantUndecided(t, client, closed, "mete is gone")
			})
		}
	})
}

// wantUndecided fails the test unless a request that mete did not decide about is
// answered as the example was told to.
func (s *site) wantUndecided(t *testing.T, client netip.Addr, closed bool, what string) {
	t.Helper()
	for range 2 {
		before := s.service.requests()
		a := s.send(t, client, login)
		came := s.service.requests() - before
		switch {
		case closed && (a.status != s.silence && !(s.name == "caddy" && a.status == 504) || came != 0):
			t.Errorf("%s, fail closed: got %d, and %d requests for the service, want %d and none", what, a.status, came, s.silence)
		case !closed && (a.status != 200 || came != 1 || s.service.last() != "POST /login 3" || a.rule() != ""):
			t.Errorf("%s, fail open: got %d with %v, and %q for the service, want 200 and the whole request", what, a.status, a.header, s.service.last())
		}
	}
}

// awaitDecision waits until mete decides about the client's requests.
func (s *site) awaitDecision(t *testing.T, client netip.Addr) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), meted.Patience)
	defer cancel()
	err := proctest.Poll(ctx, func(context.Context) error {
		if a := s.send(t, client, get); a.status != 200 || a.rule() == "" {
			return fmt.Errorf("got %d with %v, want a decision", a.status, a.header)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// A client must not make the gateway treat mete as down by the size of a request or the number of its
// fields. The client has no logins left, so each request that passes has bypassed the check.
func TestFailure_ClientsCannotOpen(t *testing.T) {
	each(t, func(t *testing.T, k kind) {
		s, client := start(t, k, setup{}), newClients().another()
		for range 5 {
			if a := s.send(t, client, login); a.status != 200 {
				t.Fatalf("got %d, want 200", a.status)
			}
		}
		before, refused := s.service.requests(), 0
		for _, request := range heavy() {
			a, ok := s.try(t, client, request)
			if ok && a.status < 400 || s.service.requests() != before {
				t.Fatalf("%d bytes, %d fields (%.70q): got %d, and the service saw %q, want it refused",
					len(request), strings.Count(request, "\r\n"), request, a.status, s.service.last())
			}
			if a.status == 429 {
				refused++
			}
		}
		if refused < 10 {
			t.Errorf("mete was asked about %d of these, want it asked about most", refused)
		}
		if a := s.send(t, client, get); a.status != 200 || a.rule() != "address 99" {
			t.Errorf("afterwards: got %d with %v, want 200 by rule address", a.status, a.header)
		}
	})
}

// heavy returns logins that are long or have many fields. The sizes surround all known limits: 100 fields,
// and 8 KiB to 1 MiB.
func heavy() []string {
	var all []string
	post := func(query, fields string) {
		all = append(all, "POST /login"+query+" HTTP/1.1\r\nHost: shop.example\r\n"+fields+"Content-Length: 3\r\n\r\na=1")
	}
	for _, n := range []int{1 << 10, 4 << 10, 7 << 10, 7900, 8000, 8100, 8 << 10, 9 << 10, 12 << 10, 15 << 10, 16 << 10, 17 << 10, 20 << 10, 33 << 10, 66 << 10} {
		post("?"+strings.Repeat("a", n), "")
		post("", "X-Long: "+strings.Repeat("a", n)+"\r\n")
		post("?"+strings.Repeat("a", n/2), "X-Long: "+strings.Repeat("a", n/2)+"\r\n")
		post("", strings.Repeat("X-Long: "+strings.Repeat("a", 500)+"\r\n", n/500+1))
	}
	for _, n := range []int{50, 90, 93, 94, 95, 96, 97, 98, 99, 100, 101, 150, 1000} {
		post("", strings.Repeat("X-Many: 1\r\n", n))
	}
	for _, n := range []int{15000, 15200, 15400, 15600, 15800, 15900, 16000, 16100, 16200, 16300} { // HAProxy's buffer
		post("", "X-Long: "+strings.Repeat("a", n)+"\r\n")
	}
	post("", "X-Long: "+strings.Repeat("a", 2<<20)+"\r\n")
	return all
}
