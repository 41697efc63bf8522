// SPDX-License-Identifier: Apache-2.0

package grpcserver_test

import (
	"encoding/binary"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/metehq/mete/cmd/internal/grpcserver"
)

// Types of frames and the setting that the tests use, from RFC 9113.
const (
	frameSettings = 4
	framePing     = 6
	frameGoAway   = 7

	settingMaxStreams = 3
)

// A frames is a client that sends and receives single frames of HTTP/2.
type frames struct {
	net.Conn
	t *testing.T
}

// frames opens a connection, and sends the preface with empty settings.
func (r *running) frames() *frames {
	r.t.Helper()
	conn, err := net.Dial("tcp", r.address)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { conn.Close() })
	conn.SetDeadline(time.Now().Add(time.Minute))
	f := &frames{conn, r.t}
	io.WriteString(f, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
	f.send(frameSettings, "")
	return f
}

func (f *frames) send(kind byte, payload string) {
	header := [9]byte{2: byte(len(payload)), 3: kind}
	io.WriteString(f, string(header[:])+payload) // the server may have closed the connection
}

// await returns the payload of the next frame of a type.
func (f *frames) await(kind byte) []byte {
	f.t.Helper()
	for {
		var header [9]byte
		if _, err := io.ReadFull(f, header[:]); err != nil {
			f.t.Fatalf("no frame of type %d: %v", kind, err)
		}
		payload := make([]byte, binary.BigEndian.Uint32(header[:4])>>8)
		if _, err := io.ReadFull(f, payload); err != nil {
			f.t.Fatal(err)
		}
		if header[3] == kind {
			return payload
		}
	}
}

// The server tells clients the bound of streams.
func TestServer_MaxStreams(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ config, want uint32 }{{7, 7}, {0, grpcserver.DefaultMaxStreams}} {
		settings := start(t, grpcserver.Config{MaxStreams: c.config}, 10).frames().await(frameSettings)
		got := uint32(0)
		for ; len(settings) >= 6; settings = settings[6:] {
			if binary.BigEndian.Uint16(settings) == settingMaxStreams {
				got = binary.BigEndian.Uint32(settings[2:])
			}
		}
		if got != c.want {
			t.Errorf("MaxStreams %d: the setting is %d, want %d", c.config, got, c.want)
		}
	}
}

// A client that pings in a row loses its connection.
func TestServer_Pings(t *testing.T) {
	t.Parallel()
	f := start(t, grpcserver.Config{}, 10).frames()
	for range 10 {
		f.send(framePing, "mete1234")
	}
	const calm = "\x00\x00\x00\x0b" // ENHANCE_YOUR_CALM
	if got := string(f.await(frameGoAway)); !strings.HasPrefix(got[4:], calm+"too_many_pings") {
		t.Errorf("GOAWAY %q, want too_many_pings", got)
	}
}

// Idle and old connections end with GOAWAY, so that clients open new ones.
func TestServer_Ages(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]grpcserver.Config{
		"idle": {IdleTimeout: time.Millisecond},
		"old":  {MaxAge: time.Millisecond, AgeGrace: time.Millisecond},
	} {
		f := start(t, c, 10).frames()
		const noError = "\x00\x00\x00\x00"
		if got := string(f.await(frameGoAway)); got[4:8] != noError {
			t.Errorf("%s: GOAWAY %q, want no error", name, got)
		}
	}
}
