// SPDX-License-Identifier: Apache-2.0

package respapi_test

import (
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/respapi"
)

// A full server replaces the longest idle client, and keeps clients that sent a command within five minutes.
func TestServer_ReplaceIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &pipes{conns: make(chan net.Conn), done: make(chan struct{})}
		s := serveOn(t, l, newLimiter(t, newModel(), "", mete.Config{}), respapi.Config{MaxClients: 3})
		connect := func() net.Conn {
			ours, theirs := net.Pipe()
			t.Cleanup(func() { ours.Close() })
			l.conns <- theirs
			return ours
		}
		const ping, pong = "PING\r\n", "+PONG\r\n"
		busy, silent, half := connect(), connect(), connect()
		exchange(t, busy, ping, pong)
		io.WriteString(half, "PIN") // a part of a command is no excuse
		for range 5 {
			time.Sleep(time.Minute - time.Second)
			exchange(t, busy, ping, pong)
		}
		if rest, err := io.ReadAll(connect()); err != nil || string(rest) != "-ERR max number of clients reached\r\n" {
			t.Fatalf("before five minutes a new client got %q and error %v", rest, err)
		}
		time.Sleep(10 * time.Second)
		for i, idle := range []net.Conn{silent, half} {
			exchange(t, connect(), ping, pong)
			if _, err := idle.Read(make([]byte, 1)); err != io.EOF {
				t.Errorf("idle client %d: %v, want the end", i, err)
			}
		}
		if rest, err := io.ReadAll(connect()); err != nil || len(rest) == 0 {
			t.Errorf("without an idle client a new one got %q and error %v", rest, err)
		}
		exchange(t, busy, ping, pong)
		if got := s.Stats(); got.Clients != 3 || got.Replaced != 2 || got.Rejected != 2 {
			t.Errorf("stats %+v", got)
		}
	})
}
