// SPDX-License-Identifier: Apache-2.0

package abuse_test

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"sync/atomic"
	"testing"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/metehq/mete/internal/testkit"
	"github.com/metehq/mete/proof/meted"
)

// A raw2 is a connection of HTTP/2 whose frames are written by hand.
type raw2 struct {
	t      *testing.T
	conn   *tls.Conn
	framer *http2.Framer
	ended  chan struct{} // closed when nothing more comes back
	window uint32
}

// dial2 opens one, with a window of so many bytes for each stream, and reads what comes
// back if it is to.
func dial2(t *testing.T, addr string, config *tls.Config, window uint32, reads bool) *raw2 {
	t.Helper()
	config = config.Clone()
	config.NextProtos = []string{"h2"}
	conn := tls.Client(dial(t, addr), config)
	if err := conn.HandshakeContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := conn.ConnectionState().NegotiatedProtocol; got != "h2" {
		t.Fatalf("the server speaks %q, want h2", got)
	}
	c := &raw2{t: t, conn: conn, framer: http2.NewFramer(conn, conn), ended: make(chan struct{}), window: window}
	if _, err := io.WriteString(conn, http2.ClientPreface); err != nil {
		t.Fatal(err)
	}
	if err := c.framer.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: window}); err != nil {
		t.Fatal(err)
	}
	if reads {
		go func() {
			defer close(c.ended)
			io.Copy(io.Discard, conn)
		}()
	}
	return c
}

// headers are those of a request.
func headers(path string) []byte {
	var block bytes.Buffer
	e := hpack.NewEncoder(&block)
	for _, f := range [][2]string{{":method", "GET"}, {":scheme", "https"}, {":authority", "127.0.0.1"}, {":path", path}} {
		if err := e.WriteField(hpack.HeaderField{Name: f[0], Value: f[1]}); err != nil {
			panic(err) // of a buffer: it cannot be
		}
	}
	return block.Bytes()
}

// get begins a request on a stream.
func (c *raw2) get(stream uint32, path string) error {
	return c.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: headers(path), EndStream: true, EndHeaders: true})
}

// mustServe2 fails the test unless others are served.
func mustServe2(t *testing.T, s *meted.Server, config *tls.Config, during string) {
	t.Helper()
	own := over(config)
	defer own.CloseIdleConnections()
	for i := range 20 {
		resp, err := (&http.Client{Transport: own, Timeout: meted.Patience}).Get(s.URL + "/livez")
		if err != nil {
			t.Fatalf("another client, request %d during %s: %v", i, during, err)
		}
		if got := readAnswer(t, resp); got.status != http.StatusOK || resp.ProtoMajor != 2 {
			t.Errorf("another client, request %d during %s: %d by %s, want 200 by HTTP/2", i, during, got.status, resp.Proto)
		}
	}
}

// Requests that are taken back as soon as they are sent (CVE-2023-44487) do not pile up
// at the upstream, and others are served.
func TestAbuse_RapidReset(t *testing.T) {
	t.Parallel()
	const resets, most = 20_000, 1000 // 250 streams, and canceled streams that the upstream still serves
	var now, peak atomic.Int64
	upstream := serve(t, func(w http.ResponseWriter, r *http.Request) {
		defer now.Add(-1)
		n := now.Add(1)
		for p := peak.Load(); n > p && !peak.CompareAndSwap(p, n); p = peak.Load() {
		}
		<-r.Context().Done()
	})
	s, config := startTLS(t, perAddress("10000"), "upstream: "+upstream.URL+"\n")
	c := dial2(t, s.Addr, config, 1<<16-1, true)
	attack := make(chan int)
	go func() {
		sent := 0
		defer func() { attack <- sent }()
		for ; sent < resets; sent++ {
			stream := uint32(2*sent + 1)
			if c.get(stream, "/slow") != nil || c.framer.WriteRSTStream(stream, http2.ErrCodeCancel) != nil {
				return // cut off
			}
		}
	}()
	mustServe2(t, s, config, "resets")
	t.Logf("%d of %d resets were taken; at most %d requests at once at the upstream", <-attack, resets, peak.Load())
	if got := peak.Load(); got > most {
		t.Errorf("%d requests were at the upstream at once, want at most %d", got, most)
	}
	c.conn.Close()
	testkit.Eventually(t, "the upstream is left alone", func() error {
		if n := now.Load(); n != 0 {
			return fmt.Errorf("%d requests are still there", n)
		}
		return nil
	})
	mustServe2(t, s, config, "the time after")
}

// Headers that never end (CVE-2023-45288), and other frames without end, are cut off.
func TestAbuse_FloodsOfFrames(t *testing.T) {
	t.Parallel()
	s, config := startTLS(t, perAddress("10000"), impatient)
	huge := bytes.Repeat([]byte{0x40, 0x01, 'x', 0x7f, 0x00}, 3000) // fields of the same name, each added to the table
	for _, tt := range []struct {
		name  string
		reads bool
		begin func(*raw2) error
		again func(*raw2) error
	}{
		{"continuations", true,
			func(c *raw2) error {
				return c.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: headers("/livez")})
			},
			func(c *raw2) error { return c.framer.WriteContinuation(1, false, huge[:15_000]) }},
		{"empty continuations", true,
			func(c *raw2) error {
				return c.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: headers("/livez")})
			},
			func(c *raw2) error { return c.framer.WriteContinuation(1, false, nil) }},
		{"pings that are not read", false, func(*raw2) error { return nil },
			func(c *raw2) error { return c.framer.WritePing(false, [8]byte{}) }},
		{"settings that are not read", false, func(*raw2) error { return nil },
			func(c *raw2) error { return c.framer.WriteSettings() }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := dial2(t, s.Addr, config, 1<<16-1, tt.reads)
			err := tt.begin(c)
			i := 0
			for ; err == nil && i < 1<<22; i++ {
				err = tt.again(c)
			}
			switch {
			case err == nil:
				t.Errorf("%d frames were taken, want the connection cut off", i)
			case errors.Is(err, os.ErrDeadlineExceeded):
				t.Errorf("after %d frames the connection was kept open", i)
			}
			c.conn.Close()
			mustServe2(t, s, config, "a flood of frames")
		})
	}
}

// Streams whose client never reads do not hold what they hold for ever: neither at the
// upstream nor here.
func TestAbuse_StreamsThatNeverRead(t *testing.T) {
	t.Parallel()
	const streams = 100
	var begun, ended atomic.Int64
	upstream := serve(t, func(w http.ResponseWriter, r *http.Request) {
		begun.Add(1)
		defer ended.Add(1)
		if r.URL.Path == "/short" {
			io.WriteString(w, "hello")
			return
		}
		for block := make([]byte, 1<<16); r.Context().Err() == nil; {
			if _, err := w.Write(block); err != nil {
				return
			}
		}
	})
	for _, path := range []string{"/endless", "/short", "/livez"} {
		t.Run(path[1:], func(t *testing.T) {
			begun.Store(0)
			ended.Store(0)
			s, config := startTLS(t, perAddress("10000"), "timeouts: {client_body: 2s}\nupstream: "+upstream.URL+"\n")
			c := dial2(t, s.Addr, config, 0, false)
			for i := range streams {
				if err := c.get(uint32(2*i+1), path); err != nil {
					t.Fatal(err)
				}
			}
			mustServe2(t, s, config, "streams that are not read")
			resets := 0
			for resets < streams {
				frame, err := c.framer.ReadFrame()
				if err != nil {
					t.Fatalf("%d of %d streams were reset, then %v", resets, streams, err)
				}
				if frame.Header().Type == http2.FrameRSTStream {
					resets++
				}
			}
			testkit.Eventually(t, "the upstream is left alone", func() error {
				if b, e := begun.Load(), ended.Load(); b != e {
					return fmt.Errorf("%d requests have come, %d have ended", b, e)
				}
				return nil
			})
		})
	}
}
