// SPDX-License-Identifier: Apache-2.0

package respapi_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/testkit"
	"github.com/metehq/mete/memstore"
	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/respapi"
	"github.com/metehq/mete/store"
	"github.com/metehq/mete/storetest"
)

func newModel() mete.Store { return storetest.NewModel(newClock().read) }

func TestServer_MaxClients(t *testing.T) {
	s, addr := serve(t, newLimiter(t, newModel(), "", mete.Config{}), respapi.Config{MaxClients: 2})
	a, b := dial(t, addr), dial(t, addr)
	a.want("+PONG", "PING")
	b.want("+PONG", "PING")
	c := dial(t, addr)
	c.send("PING\r\n") // unread bytes must not discard the error
	c.wantClosed("-ERR max number of clients reached\r\n")
	if got := s.Stats(); got.Clients != 2 || got.Rejected != 1 || got.Accepted != 3 {
		t.Errorf("stats %+v", got)
	}
	a.do("QUIT")
	testkit.Until(t, "a free place", func() bool { return s.Stats().Clients == 1 })
	dial(t, addr).want("+PONG", "PING")
}

func newMemory(t testing.TB) mete.Store {
	t.Helper()
	s, err := memstore.New(memstore.Config{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// A pipeline is answered in order, whatever the parts in which it arrives.
func TestServer_Pipeline(t *testing.T) {
	p, _, _ := start(t, "", respapi.Config{})
	const n = 5000
	var all strings.Builder
	for i := range n {
		all.WriteString(frame("ECHO", fmt.Sprint(i)))
	}
	go io.WriteString(p, all.String())
	for i := range n {
		if got := p.read(); got != fmt.Sprint(i) {
			t.Fatalf("reply %d: got %s", i, got)
		}
	}
	large := strings.Repeat("x", respapi.MaxArgumentBytes)
	p.want(large, "ECHO", large)
	p.want("+PONG", "PING")
}

// The last bytes of a client and the end of its stream often arrive together.
func TestServer_HalfClose(t *testing.T) {
	for _, before := range []int{0, 100} {
		p, _, _ := start(t, "", respapi.Config{})
		for range before {
			p.want("+PONG", "PING")
		}
		p.send("PING\r\n")
		if err := p.Conn.(*net.TCPConn).CloseWrite(); err != nil {
			t.Fatal(err)
		}
		p.wantClosed("+PONG\r\n")
	}
}

// servePipe serves one client over a pipe, in a bubble with its own time.
func servePipe(t *testing.T, config respapi.Config) (*respapi.Server, net.Conn) {
	l := &pipes{conns: make(chan net.Conn), done: make(chan struct{})}
	s := serveOn(t, l, newLimiter(t, newModel(), "", mete.Config{}), config)
	ours, theirs := net.Pipe()
	t.Cleanup(func() { ours.Close() })
	l.conns <- theirs
	return s, ours
}

// pipes is a listener for the ends of pipes.
type pipes struct {
	conns chan net.Conn
	done  chan struct{}
	once  sync.Once
}

func (l *pipes) Accept() (net.Conn, error) {
	select {
	case nc := <-l.conns:
		return nc, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}
func (l *pipes) Close() error   { l.once.Do(func() { close(l.done) }); return nil }
func (l *pipes) Addr() net.Addr { return &net.TCPAddr{} }

func exchange(t *testing.T, nc net.Conn, text, want string) {
	t.Helper()
	if _, err := io.WriteString(nc, text); err != nil {
		t.Fatal(err)
	}
	reply := make([]byte, len(want))
	if _, err := io.ReadFull(nc, reply); err != nil || string(reply) != want {
		t.Fatalf("%q: got %q and error %v, want %q", text, reply, err, want)
	}
}

func TestServer_IdleTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, nc := servePipe(t, respapi.Config{IdleTimeout: time.Minute})
		for range 5 {
			time.Sleep(59 * time.Second)
			exchange(t, nc, "PING\r\n", "+PONG\r\n")
		}
		start := time.Now()
		if _, err := nc.Read(make([]byte, 1)); err != io.EOF {
			t.Fatal(err)
		}
		if idle := time.Since(start); idle < time.Minute || idle > time.Minute+4*time.Second {
			t.Errorf("closed after %v", idle)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		_, nc := servePipe(t, respapi.Config{IdleTimeout: time.Minute})
		start := time.Now() // a part of a command is no excuse
		io.WriteString(nc, "*2\r\n$4\r\nEC")
		if _, err := nc.Read(make([]byte, 1)); err != io.EOF || time.Since(start) > time.Minute+4*time.Second {
			t.Errorf("closed after %v with %v", time.Since(start), err)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		_, nc := servePipe(t, respapi.Config{})
		time.Sleep(1000 * time.Hour)
		exchange(t, nc, "PING\r\n", "+PONG\r\n")
		time.Sleep(1000 * time.Hour)
		exchange(t, nc, "PING\r\n", "+PONG\r\n")
	})
}

func TestServer_TimeForAuth(t *testing.T) {
	config := respapi.Config{Authenticate: func(context.Context, respapi.Login) (respapi.Role, bool) { return respapi.RoleOperate, true }}
	synctest.Test(t, func(t *testing.T) {
		_, nc := servePipe(t, config)
		const denied = "-NOAUTH Authentication required.\r\n"
		for range 9 {
			exchange(t, nc, "PING\r\n", denied)
			time.Sleep(time.Second)
		}
		if _, err := nc.Read(make([]byte, 1)); err != io.EOF {
			t.Error(err)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		_, nc := servePipe(t, config)
		exchange(t, nc, "AUTH x\r\n", "+OK\r\n")
		time.Sleep(time.Minute)
		exchange(t, nc, "RESET\r\n", "+RESET\r\n")
		time.Sleep(9 * time.Second)
		exchange(t, nc, "AUTH x\r\n", "+OK\r\n")
		time.Sleep(4 * time.Minute)
		exchange(t, nc, "PING\r\n", "+PONG\r\n")
	})
}

func TestServer_WriteTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, nc := servePipe(t, respapi.Config{})
		start := time.Now()
		io.WriteString(nc, "PING\r\n") // and read nothing
		time.Sleep(2 * respapi.DefaultWriteTimeout)
		if got := s.Stats().Clients; got != 0 {
			t.Errorf("%d clients after %v", got, time.Since(start))
		}
	})
}

func TestServer_Handshake(t *testing.T) {
	backend := httptest.NewTLSServer(nil) // for its certificate
	defer backend.Close()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	serveOn(t, tls.NewListener(l, backend.TLS), newLimiter(t, newModel(), "", mete.Config{}), respapi.Config{HandshakeTimeout: time.Second})
	silent := dial(t, l.Addr().String())
	silent.wantClosed("")
	config := backend.Client().Transport.(*http.Transport).TLSClientConfig.Clone()
	config.ServerName = "example.com"
	nc, err := tls.Dial("tcp", l.Addr().String(), config)
	if err != nil {
		t.Fatal(err)
	}
	newPeer(t, nc).want("+PONG", "PING")
}

// Shutdown finishes the commands that the server executes.
func TestServer_Shutdown(t *testing.T) {
	slow := &slowStore{Store: newModel(), entered: make(chan struct{}), proceed: make(chan struct{})}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := serveOn(t, l, newLimiter(t, slow, "", mete.Config{}), respapi.Config{})
	busy, idle := dial(t, l.Addr().String()), dial(t, l.Addr().String())
	idle.want("+PONG", "PING")
	busy.send(frame("CL.THROTTLE", "k", "15", "30", "60") + frame("PING"))
	<-slow.entered
	done := make(chan error)
	go func() { done <- s.Shutdown(t.Context()) }()
	idle.wantClosed("")
	close(slow.proceed)
	busy.wantClosed("*5\r\n:0\r\n:16\r\n:15\r\n:-1\r\n:2\r\n+PONG\r\n")
	if err := <-done; err != nil {
		t.Error(err)
	}
	if _, err := net.Dial("tcp", l.Addr().String()); err == nil {
		t.Error("the listener is open")
	}
}

func TestServer_ShutdownDeadline(t *testing.T) {
	slow := &slowStore{Store: newModel(), entered: make(chan struct{}), proceed: make(chan struct{})}
	s, addr := serve(t, newLimiter(t, slow, "", mete.Config{}), respapi.Config{})
	busy := dial(t, addr)
	busy.send(frame("CL.THROTTLE", "k", "15", "30", "60"))
	<-slow.entered
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Shutdown(ctx); err != context.Canceled {
		t.Errorf("got %v, want canceled", err)
	}
}

// slowStore delays the first take until proceed is closed or the context is done.
type slowStore struct {
	mete.Store
	once             sync.Once
	entered, proceed chan struct{}
}

func (s *slowStore) Take(ctx context.Context, dst []bucket.Snapshot, charges []store.Charge, mode store.Mode) ([]bucket.Snapshot, bool, error) {
	s.once.Do(func() { close(s.entered) })
	select {
	case <-s.proceed:
	case <-ctx.Done():
		return nil, false, ctx.Err()
	}
	return s.Store.Take(ctx, dst, charges, mode)
}

// A panic, for example in a hook, ends one connection and not the process.
func TestServer_Panic(t *testing.T) {
	var log testkit.Log
	lim := newLimiter(t, newModel(), perUser, mete.Config{OnDecision: func(context.Context, *mete.Decision) { panic("hook") }})
	_, addr := serve(t, lim, respapi.Config{Log: log.Logger()})
	p, other := dial(t, addr), dial(t, addr)
	p.send(frame("METE.TAKE", "user", "a"))
	p.wantClosed("")
	other.want("+PONG", "PING")
	testkit.Until(t, "the log", func() bool { return log.Count("panic in a RESP connection") == 1 })
}

// brokenStore fails every take.
type brokenStore struct{ mete.Store }

func (s *brokenStore) Take(context.Context, []bucket.Snapshot, []store.Charge, store.Mode) ([]bucket.Snapshot, bool, error) {
	return nil, false, &mete.StoreError{Spent: mete.NotSpent}
}

func (s *brokenStore) Unwrap() mete.Store { return s.Store }

// While the store is unavailable, on_store_error decides, as for the HTTP API.
func TestServer_StoreErrors(t *testing.T) {
	closed := strings.Replace(perUser, `"name": "users"`, `"name": "users", "on_store_error": "closed"`, 1)
	for _, tt := range []struct {
		what, rules        string
		onStoreError       policy.OnStoreError
		throttle, decision string
	}{
		{"open", perUser, policy.OnStoreErrorOpen, "*[0,16,0,-1,0]", "*[0,-1,-1,-1,0,,,0,*[]]"},
		{"closed", closed, policy.OnStoreErrorClosed, "*[1,16,0,1,1]", "*[1,-1,-1,1,1,users,store_error,0,*[]]"},
	} {
		broken := &brokenStore{newMemory(t)}
		throttle := newLimiter(t, broken, "", mete.Config{OnStoreError: tt.onStoreError})
		_, addr := serve(t, newLimiter(t, broken, tt.rules, mete.Config{}), respapi.Config{Throttle: throttle})
		p := dial(t, addr)
		p.want(tt.throttle, "CL.THROTTLE", "k", "15", "30", "60")
		p.want(tt.decision, "METE.TAKE", "user", "a")
	}
}
