// SPDX-License-Identifier: Apache-2.0

package outcomes_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/metehq/mete/internal/testkit"
)

// startTicker starts a server that upgrades each connection, and sends a line on it twice a second.
func startTicker(t *testing.T) (addr string) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		fmt.Fprint(conn, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n")
		ticker := time.NewTicker(time.Second / 2)
		defer ticker.Stop()
		for range ticker.C {
			if _, err := fmt.Fprint(conn, "tick\n"); err != nil {
				return
			}
		}
	}))
	t.Cleanup(server.Close)
	return server.Listener.Addr().String()
}

// leaseSeconds is the lease of the rule "exports". The gateway renews a lease long before its end.
const leaseSeconds = 5

// open sends a request, and returns its status and a body that the test must close.
func (g gateway) open(path string) (int, io.ReadCloser) {
	g.t.Helper()
	req, err := http.NewRequestWithContext(g.t.Context(), http.MethodGet, g.URL+path, nil)
	if err != nil {
		g.t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		g.t.Fatal(err)
	}
	return res.StatusCode, res.Body
}

// free waits until a request to path finds a slot, and frees the slot again.
func (g gateway) free(path, why string) {
	g.t.Helper()
	testkit.Eventually(g.t, why, func() error {
		status, body := g.open(path)
		body.Close()
		if status == http.StatusTooManyRequests {
			return fmt.Errorf("status %d", status)
		}
		return nil
	})
}

// upgrade asks for an upgraded connection, and returns the first line of the answer.
func (g gateway) upgrade() (net.Conn, *bufio.Reader, string) {
	g.t.Helper()
	conn, err := net.Dial("tcp", g.Addr)
	if err != nil {
		g.t.Fatal(err)
	}
	g.t.Cleanup(func() { conn.Close() })
	fmt.Fprintf(conn, "GET /socket HTTP/1.1\r\nHost: %s\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n", g.Addr)
	r := bufio.NewReader(conn)
	status, err := r.ReadString('\n')
	if err != nil {
		g.t.Fatal(err)
	}
	for line := status; strings.TrimSpace(line) != ""; {
		if line, err = r.ReadString('\n'); err != nil {
			g.t.Fatal(err)
		}
	}
	return conn, r, strings.TrimSpace(status)
}

// Downloads and upgraded connections hold their slots for longer than a lease, and until their clients leave.
func testSlots(t *testing.T, g gateway) {
	socket, ticks, firstSocket := g.upgrade()
	idle, _, secondSocket := g.upgrade()
	defer idle.Close()
	if !strings.Contains(firstSocket, " 101 ") || !strings.Contains(secondSocket, " 101 ") {
		t.Fatalf("two upgrades: %q and %q", firstSocket, secondSocket)
	}
	first, body := g.open("/export")
	second, other := g.open("/export")
	defer other.Close()
	if first != http.StatusOK || second != http.StatusOK {
		t.Fatalf("two downloads: %d and %d", first, second)
	}
	for range 2*leaseSeconds + 1 {
		if line, err := ticks.ReadString('\n'); err != nil || line != "tick\n" {
			t.Fatalf("%q, %v", line, err)
		}
		if _, err := io.ReadFull(body, make([]byte, 1000)); err != nil {
			t.Fatal(err)
		}
		status, third := g.open("/export")
		third.Close()
		if status != http.StatusTooManyRequests {
			t.Errorf("a third download: %d", status)
		}
	}
	if _, _, third := g.upgrade(); !strings.Contains(third, " 429 ") {
		t.Errorf("a third upgrade: %q", third)
	}
	body.Close()
	g.free("/export", "the slot of a client that left is free")
	socket.Close()
	testkit.Eventually(t, "the slot of a closed connection is free", func() error {
		conn, _, status := g.upgrade()
		if conn.Close(); !strings.Contains(status, " 101 ") {
			return fmt.Errorf("status %q", status)
		}
		return nil
	})
}

// An upstream that hangs up frees the slot: two slots serve more than two such requests.
func testSlotsOfCrashes(t *testing.T, g gateway) {
	for range 5 {
		status, body := g.open("/crash")
		body.Close()
		if status != http.StatusBadGateway {
			t.Errorf("an upstream that hangs up: %d", status)
		}
	}
}

// testLongSockets leaves upgraded connections open for the time of a soak, such as METE_SOAK=10m. They hold all slots the whole
// time, and free them at their end.
func testLongSockets(t *testing.T, g gateway) {
	text := os.Getenv("METE_SOAK")
	if text == "" {
		return
	}
	lasts, err := time.ParseDuration(text)
	if err != nil {
		t.Fatalf("METE_SOAK: %v", err)
	}
	g.wantFree("/socket", 2) // earlier connections have ended
	end := time.Now().Add(lasts)
	first, ticks, firstStatus := g.upgrade()
	second, others, secondStatus := g.upgrade()
	if !strings.Contains(firstStatus, " 101 ") || !strings.Contains(secondStatus, " 101 ") {
		t.Fatalf("two upgrades: %q and %q", firstStatus, secondStatus)
	}
	for i := 0; time.Now().Before(end); i++ {
		for _, r := range []*bufio.Reader{ticks, others} {
			if line, err := r.ReadString('\n'); err != nil || line != "tick\n" {
				t.Fatalf("%q, %v, %v before the end", line, err, time.Until(end))
			}
		}
		if i%5 > 0 {
			continue
		}
		conn, _, third := g.upgrade()
		if conn.Close(); !strings.Contains(third, " 429 ") {
			t.Fatalf("a third upgrade, %v before the end: %q", time.Until(end), third)
		}
	}
	first.Close()
	second.Close()
	g.wantFree("/socket", 2)
}

// wantFree waits until a path has this many free slots.
func (g gateway) wantFree(path string, want float64) {
	g.t.Helper()
	testkit.Eventually(g.t, "slots are free", func() error {
		free, err := g.left(path, "exports")
		if err == nil && free != want {
			err = fmt.Errorf("%v slots of %s are free", free, path)
		}
		return err
	})
}
