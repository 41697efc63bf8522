// SPDX-License-Identifier: Apache-2.0

package proxy_test

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/metehq/mete/proxy"
)

// TestWebSocket_HoldsItsSlot leaves a WebSocket open for ten minutes of the bubble's clock. It holds a slot with a lease of three
// seconds the whole time, at first with and then without traffic. Its end frees the slot at once.
func TestWebSocket_HoldsItsSlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		defer n.serve("a:80", func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Upgrade") != "" {
				switching(t, func(conn net.Conn, rw *bufio.ReadWriter) { io.Copy(conn, rw) })(w, r)
			}
		})()
		p := n.gateBy(ruledBy(t, `"algorithm": "concurrency", "max": 1, "lease": "3s"`), proxy.Config{}, proxy.Health{}, "a:80")
		defer p.Close()
		defer n.serve("front:80", p.ServeHTTP)()
		began := time.Now()
		conn, resp := upgradeOn(t, n.connect("front:80").Conn)
		if resp.StatusCode != http.StatusSwitchingProtocols {
			t.Fatalf("got %d, want 101", resp.StatusCode)
		}
		conn.SetDeadline(time.Time{})
		client := n.client()
		wantOther := func(status int) {
			t.Helper()
			resp, err := client.Get("http://front/")
			if err != nil {
				t.Fatal(err)
			}
			if resp.Body.Close(); resp.StatusCode != status {
				t.Fatalf("another request got %d after %v, want %d", resp.StatusCode, time.Since(began), status)
			}
		}
		for time.Since(began) < 10*time.Minute {
			wantOther(http.StatusTooManyRequests)
			if time.Since(began) < 5*time.Minute {
				io.WriteString(conn, "echo\n")
				if line, err := conn.ReadString('\n'); line != "echo\n" {
					t.Fatalf("got %q (%v) after %v", line, err, time.Since(began))
				}
			}
			time.Sleep(500 * time.Millisecond)
		}
		conn.Close()
		synctest.Wait()
		wantOther(http.StatusOK)
		wantOther(http.StatusOK)
	})
}
