// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"errors"
	"net"
	"os"
	"testing"
	"time"
)

// Connections that wait for nothing but their next request give way to new ones, the
// one that has waited longest first. One that is in use does not.
func TestBounds_IdleConnectionsGiveWay(t *testing.T) {
	t.Parallel()
	u := newHeldUpstream(t)
	c := testConfig()
	c.MaxConnections, c.Upstream = 3, mustURL(u.URL)
	s := start(t, c)
	busy := ask(s.main + "/")
	<-u.arrived
	var idle []net.Conn
	for range 5 { // three more than there is room for
		conn, err := net.Dial("tcp", s.server.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if !asks(conn, patience) {
			t.Fatalf("connection %d is not answered", len(idle)+1)
		}
		idle = append(idle, conn)
	}
	for i, conn := range idle[:3] {
		conn.SetReadDeadline(time.Now().Add(patience))
		if _, err := conn.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("idle connection %d: %v, want that it was closed", i+1, err)
		}
	}
	close(u.release)
	if a := <-busy; a.status != 200 {
		t.Errorf("the request in flight: %+v, want 200", a)
	}
}
