// SPDX-License-Identifier: Apache-2.0

package respapi_test

import (
	"context"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/respapi"
)

// RESET gives no new time for AUTH to a client that never had rights, so strangers cannot keep the places of others.
func TestReset_ExtendsNoAuth(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &pipes{conns: make(chan net.Conn), done: make(chan struct{})}
		serveOn(t, l, newLimiter(t, newModel(), "", mete.Config{}), respapi.Config{
			HandshakeTimeout: 10 * time.Second,
			Authenticate: func(_ context.Context, login respapi.Login) (respapi.Role, bool) {
				return respapi.RoleTake, login.Password == "token"
			},
		})
		connect := func() net.Conn {
			ours, theirs := net.Pipe()
			t.Cleanup(func() { ours.Close() })
			l.conns <- theirs
			return ours
		}
		stranger, member := connect(), connect()
		exchange(t, member, "AUTH token\r\n", "+OK\r\n")
		time.Sleep(7 * time.Second)
		exchange(t, stranger, "RESET\r\n", "+RESET\r\n")
		exchange(t, member, "RESET\r\n", "+RESET\r\n")
		time.Sleep(7 * time.Second)
		if _, err := stranger.Read(make([]byte, 1)); err != io.EOF {
			t.Errorf("stranger after 14 seconds: %v, want the end", err)
		}
		exchange(t, member, "AUTH token\r\n", "+OK\r\n")
	})
}
