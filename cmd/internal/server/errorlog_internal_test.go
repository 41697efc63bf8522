// SPDX-License-Identifier: Apache-2.0

package server

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// Messages of net/http are logged without addresses. A flood of them is one line, and a panic is complete.
func TestErrorLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		log := newErrorLog(slog.New(slog.NewTextHandler(&out, nil)))
		for _, from := range []string{"203.0.113.77:4711", "[2001:db8::77]:4711", "[fe80::77%eth0]:4711"} {
			for range 100 {
				log.Printf("http: TLS handshake error from %s: EOF", from)
			}
			log.Printf("http: panic serving %s: oops\ngoroutine 1 [running]", from)
			log.Printf("http2: panic serving %s: oops\ngoroutine 1 [running]", from)
			time.Sleep(errorInterval)
		}
		text := out.String()
		if strings.Contains(text, "77") || strings.Count(text, "panic serving a client: oops") != 6 {
			t.Errorf("got\n%s\nwant no address, and six panics", text)
		}
		if n := strings.Count(text, "handshake error from a client: EOF"); n != 3 || !strings.Contains(text, "times=100") {
			t.Errorf("got %d lines of 300 handshakes, want 3 that count them:\n%s", n, text)
		}
		if n := strings.Count(text, "\n"); n != 9 {
			t.Errorf("got %d lines, want 9:\n%s", n, text)
		}
	})
}
