// SPDX-License-Identifier: Apache-2.0

package abuse_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/metehq/mete/httpapi"
	"github.com/metehq/mete/internal/testkit"
	"github.com/metehq/mete/proof/meted"
)

// A dribble holds a connection open at little cost: it sends begin at once, then repeats byByte one byte
// at a time.
type dribble struct{ name, begin, byByte string }

var headerDribbles = []dribble{
	{"nothing", "", ""},
	{"a request line", "GET /li", "a"},
	{"headers", "GET /livez HTTP/1.1\r\nHost: x\r\n", "X: y\r\n"},
	{"one header", "GET /livez HTTP/1.1\r\nHost: x\r\nX-Slow: ", "a"},
	{"a body that nobody wants", "GET /livez HTTP/1.1\r\nHost: x\r\nContent-Length: 60000\r\n\r\n", " "},
}

var handshakeDribbles = []dribble{
	{"no handshake", "", ""},
	{"a handshake", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", "a"},
	{"plain text", "GET / HTTP/1.1\r\n", "a"},
}

var bodyDribbles = []dribble{
	{"a body", "POST /v1/take HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 60000\r\n\r\n", " "},
	{"chunks", "POST /v1/take HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n", "1\r\n \r\n"},
}

const (
	dribbling      = 500                    // connections at a time
	adminDribbling = 200                    // fewer: the admin address has 256 connections, and the next one waits
	pace           = 200 * time.Millisecond // between two bytes, and before reconnecting
)

// A siege is a set of dribbling connections. Each reconnects when the server closes it.
type siege struct {
	addr, ask string // where, and the URL of what others ask for there
	dribbles  []dribble
	crowded   int         // how many connections
	trust     *tls.Config // nil: without TLS

	open  atomic.Int64
	renew atomic.Bool // false: closed connections stay closed
	crowd sync.WaitGroup

	mu  sync.Mutex
	cut map[string]int // connections that the server ended, by what they dribbled
}

func (s *siege) begin(ctx context.Context, t *testing.T) {
	t.Helper()
	s.cut = map[string]int{}
	s.renew.Store(true)
	for i := range s.crowded {
		s.crowd.Go(func() {
			for first := true; first || s.renew.Load() && ctx.Err() == nil; first = false {
				s.dribble(ctx, s.dribbles[i%len(s.dribbles)])
			}
		})
	}
	testkit.Eventually(t, "the connections are open", func() error {
		if n := s.open.Load(); int(n) < s.crowded/2 { // the others are between two
			return fmt.Errorf("%d of %d are", n, s.crowded)
		}
		return nil
	})
}

// dribble holds one connection until the server ends it, or ctx does.
func (s *siege) dribble(ctx context.Context, d dribble) {
	beat := time.NewTicker(pace)
	defer beat.Stop()
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", s.addr)
	if err != nil {
		select {
		case <-beat.C:
		case <-ctx.Done():
		}
		return
	}
	s.open.Add(1)
	defer s.open.Add(-1)
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		io.Copy(io.Discard, conn)
	}()
	_, err = io.WriteString(conn, d.begin)
	for i := 0; err == nil; i++ {
		select {
		case <-beat.C:
			if d.byByte != "" {
				_, err = io.WriteString(conn, d.byByte[i%len(d.byByte):][:1])
			}
		case <-ended:
			err = io.EOF
		}
	}
	if ctx.Err() == nil {
		s.mu.Lock()
		s.cut[d.name]++
		s.mu.Unlock()
	}
}

// served asks so many questions from a few clients at once, and returns the time within
// which 99 of 100 were answered. It is an error that one was not.
func (s *siege) served(t *testing.T) (time.Duration, error) {
	t.Helper()
	const clients, questions = 4, 100
	var all [clients][]time.Duration
	var failed [clients]error
	var done sync.WaitGroup
	for i := range clients {
		done.Go(func() {
			own := &http.Client{Transport: &http.Transport{}, Timeout: meted.Patience}
			if s.trust != nil {
				own.Transport = over(s.trust)
			}
			defer own.CloseIdleConnections()
			for n := range questions {
				begin := time.Now()
				resp, err := own.Get(s.ask)
				if err != nil {
					failed[i] = fmt.Errorf("client %d, question %d: %w", i, n, err)
					return
				}
				if got := readAnswer(t, resp); got.status != http.StatusOK {
					t.Errorf("client %d, question %d: %d %s, want 200", i, n, got.status, got.body)
				}
				all[i] = append(all[i], time.Since(begin))
			}
		})
	}
	done.Wait()
	times := slices.Concat(all[:]...)
	slices.Sort(times)
	if err := errors.Join(failed[:]...); err != nil {
		return 0, err
	}
	return times[len(times)*99/100], nil
}

// bestLatency returns the best latency of several rounds. Load from other programs slows single rounds, and
// one good round is enough.
func (s *siege) bestLatency(t *testing.T, bound time.Duration) time.Duration {
	t.Helper()
	const rounds = 5
	best := time.Duration(math.MaxInt64)
	var all []error
	for range rounds {
		p99, err := s.served(t)
		if all = append(all, err); err != nil {
			continue
		}
		if best = min(best, p99); best <= bound {
			return best
		}
	}
	if err := errors.Join(all...); best == math.MaxInt64 {
		t.Fatalf("in none of %d rounds all was answered: %v", rounds, err)
	}
	return best
}

// The server closes five hundred slow connections, and other clients notice nothing. The gateway streams
// bodies, so the upstream limits their pace.
func TestAbuse_SlowConnections(t *testing.T) {
	upstream := serve(t, func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "hello") })
	t.Run("api", func(t *testing.T) {
		s := start(t, perAddress("10"), impatient)
		checkSiege(t, &siege{addr: s.Addr, ask: s.URL + "/livez", crowded: dribbling, dribbles: slices.Concat(headerDribbles, bodyDribbles)})
	})
	t.Run("admin", func(t *testing.T) {
		s := start(t, perAddress("10"), impatient)
		checkSiege(t, &siege{addr: s.AdminAddr, ask: s.AdminURL + "/livez", crowded: adminDribbling, dribbles: slices.Concat(headerDribbles, bodyDribbles)})
	})
	t.Run("gateway", func(t *testing.T) {
		s := start(t, perAddress("10000"), impatient+"upstream: "+upstream.URL+"\n")
		checkSiege(t, &siege{addr: s.Addr, ask: s.URL + "/", crowded: dribbling, dribbles: headerDribbles})
	})
	t.Run("tls", func(t *testing.T) {
		s, trust := startTLS(t, perAddress("10"), impatient)
		checkSiege(t, &siege{addr: s.Addr, ask: s.URL + "/livez", crowded: dribbling, dribbles: handshakeDribbles, trust: trust})
	})
}

// checkSiege besieges an address and asks there meanwhile.
func checkSiege(t *testing.T, s *siege) {
	t.Helper()
	calm := s.bestLatency(t, meted.Patience)
	ctx, end := context.WithCancel(t.Context())
	defer end()
	s.begin(ctx, t)

	// Under the race detector the handshakes may take two seconds. Connections that block others do so
	// until the server closes them.
	bound := 20*calm + 2*time.Second
	best := s.bestLatency(t, bound)
	if best > bound {
		t.Errorf("among %d dribbling connections p99 is %v at best, and %v without them; want at most %v", s.crowded, best, calm, bound)
	}
	t.Logf("p99 %v, among %d dribbling connections %v", calm, s.crowded, best)

	s.renew.Store(false)
	gone := make(chan struct{})
	go func() { s.crowd.Wait(); close(gone) }()
	select {
	case <-gone:
	case <-time.After(meted.Patience):
		t.Errorf("%d of %d connections were still open", s.open.Load(), s.crowded)
		end()
		<-gone
	}
	for _, d := range s.dribbles {
		if s.cut[d.name] == 0 {
			t.Errorf("no connection that dribbles %s was cut off", d.name)
		}
	}
}

// The server closes the connection of a client that sends requests and never reads the responses.
func TestAbuse_UnreadAnswers(t *testing.T) {
	t.Parallel()
	s := start(t, perAddress("10"), impatient)
	batch := `{"requests":[` + strings.Repeat(takeBody("ip:address", "192.0.2.1")+",", httpapi.MaxBatch-1) + takeBody("ip:address", "192.0.2.1") + `]}`
	request := fmt.Sprintf("POST /v1/take HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(batch), batch)
	var crowd sync.WaitGroup
	for range 5 {
		conn := dial(t, s.Addr)
		conn.(*net.TCPConn).SetReadBuffer(4096) // what lies there unread
		crowd.Go(func() {
			for range 10_000 { // until neither side has room for more
				if _, err := io.WriteString(conn, request); errors.Is(err, os.ErrDeadlineExceeded) {
					t.Error("a connection whose answers are not read was kept open")
					return
				} else if err != nil {
					return
				}
			}
			t.Error("all questions were taken of who reads no answer")
		})
	}
	mustLive(t, s, "questions without end")
	crowd.Wait()
}
