// SPDX-License-Identifier: Apache-2.0

package ratelimit_test

import (
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"
)

// statsdLines are counters after three calls with a limit of two.
var statsdLines = []string{
	"ratelimit.service.rate_limit.shop.path.total_hits:3|c\n",
	"ratelimit.service.rate_limit.shop.path.over_limit:1|c\n",
}

// sendStatsd makes three calls. The service sends its counters when it stops.
func sendStatsd(t *testing.T, addr net.Addr, environ ...string) {
	t.Helper()
	root, _ := directory(t, basic)
	_, port, err := net.SplitHostPort(addr.String())
	if err != nil {
		t.Fatal(err)
	}
	r := start(t, append(environ, "RUNTIME_ROOT="+root, "USE_STATSD=true", "STATSD_HOST=127.0.0.1", "STATSD_PORT="+port, "STATS_FLUSH_INTERVAL=1h")...)
	client := dial(t, r.GRPC.String(), nil)
	for range 3 {
		call(t, client, "/a")
	}
	r.end(t)
}

func TestStatsd_TCP(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	received := make(chan string, 1)
	go func() {
		conn, err := l.Accept()
		if err != nil {
			received <- err.Error()
			return
		}
		defer conn.Close()
		text, _ := io.ReadAll(conn)
		received <- string(text)
	}()
	sendStatsd(t, l.Addr())
	text := <-received
	for _, line := range statsdLines {
		if !strings.Contains(text, line) {
			t.Errorf("the server did not receive %q:\n%s", line, text)
		}
	}
}

func TestStatsd_UDP(t *testing.T) {
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	sendStatsd(t, conn.LocalAddr(), "STATSD_PROTOCOL=udp")
	if err := conn.SetReadDeadline(time.Now().Add(timeout)); err != nil {
		t.Fatal(err)
	}
	text, buffer := "", make([]byte, 1<<16)
	for !containsAll(text, statsdLines) {
		n, _, err := conn.ReadFrom(buffer)
		if err != nil {
			t.Fatal(fmt.Errorf("%w, after:\n%s", err, text))
		}
		if n > 1432 || buffer[n-1] != '\n' {
			t.Errorf("a datagram of %d bytes that ends with %q", n, buffer[n-1])
		}
		text += string(buffer[:n])
	}
}

func containsAll(text string, lines []string) bool {
	for _, line := range lines {
		if !strings.Contains(text, line) {
			return false
		}
	}
	return true
}
