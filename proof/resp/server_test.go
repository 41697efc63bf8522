// SPDX-License-Identifier: Apache-2.0

package resp_test

import (
	"context"
	"crypto/subtle"
	"crypto/tls"
	"net"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/proctest"
	"github.com/metehq/mete/internal/testkit"
	"github.com/metehq/mete/memstore"
	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/respapi"
)

// rules have one limit: three requests at once per user, then one per minute.
const rules = `{"rules": [{"name": "per-user", "limit_keys": ["header:x-user"],
	"algorithm_config": {"rate": "1/1m", "burst": 3}}]}`

// The tokens of the test servers.
const (
	readToken    = "read-token-of-the-tests-0123456789"
	operateToken = "operate-token-of-the-tests-0123456789"
)

// authenticate accepts the tokens as passwords, with the user that Redis clients send without a user.
func authenticate(_ context.Context, login respapi.Login) (respapi.Role, bool) {
	if login.User != "default" {
		return respapi.RoleNone, false
	}
	for token, role := range map[string]respapi.Role{readToken: respapi.RoleRead, operateToken: respapi.RoleOperate} {
		if subtle.ConstantTimeCompare([]byte(token), []byte(login.Password)) == 1 {
			return role, true
		}
	}
	return respapi.RoleNone, false
}

// A server serves the rules in this process, on a clock of the test.
type server struct {
	addr string
	now  atomic.Int64 // microseconds since the start of the test

	t       testing.TB
	limiter *mete.Limiter
	config  respapi.Config
	tls     *tls.Config
	running *respapi.Server
	served  chan error
}

// serve starts a server. It ends with the test.
func serve(t testing.TB, config respapi.Config) *server {
	t.Helper()
	s := newServer(t, config)
	s.start()
	t.Cleanup(s.stop)
	return s
}

func newServer(t testing.TB, config respapi.Config) *server {
	t.Helper()
	matcher, err := policy.Load([]byte(rules), policy.Options{})
	if err != nil {
		t.Fatal(err)
	}
	s := &server{addr: proctest.FreeAddr(t), t: t, config: config}
	begin := bucket.At(time.Now())
	store, err := memstore.New(memstore.Config{Now: func() bucket.Instant { return begin + bucket.Instant(s.now.Load()) }})
	if err != nil {
		t.Fatal(err)
	}
	if s.limiter, err = mete.New(store, matcher, mete.Config{}); err != nil {
		t.Fatal(err)
	}
	return s
}

// serveTLS starts a server that accepts only TLS, and returns the file of its certificate.
func serveTLS(t testing.TB, config respapi.Config) (s *server, authority string) {
	t.Helper()
	s = newServer(t, config)
	authority = filepath.Join(t.TempDir(), "ca.pem")
	s.tls = &tls.Config{Certificates: []tls.Certificate{certify(t, authority)}}
	s.start()
	t.Cleanup(s.stop)
	return s, authority
}

// start listens at the address of the server, also after stop.
func (s *server) start() {
	s.t.Helper()
	var err error
	if s.running, err = respapi.New(s.limiter, s.config); err != nil {
		s.t.Fatal(err)
	}
	var l net.Listener
	// A program that another test starts inherits the old listener until it executes.
	testkit.Eventually(s.t, "listen again", func() error {
		l, err = net.Listen("tcp", s.addr)
		return err
	})
	if s.tls != nil {
		l = tls.NewListener(l, s.tls)
	}
	running, served := s.running, make(chan error, 1)
	s.served = served
	go func() { served <- running.Serve(l) }()
}

// stop ends the server. A second call does nothing.
func (s *server) stop() {
	if s.running == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := s.running.Shutdown(ctx); err != nil {
		s.t.Errorf("Shutdown: %v", err)
	}
	if err := <-s.served; err != respapi.ErrServerClosed {
		s.t.Errorf("Serve: %v, want %v", err, respapi.ErrServerClosed)
	}
	s.running = nil
}

// at sets the clock to a time after the start.
func (s *server) at(d time.Duration) { s.now.Store(d.Microseconds()) }

func (s *server) connection() connection {
	c := connection{addr: s.addr, resp: 3}
	if s.config.Authenticate != nil {
		c.user, c.password = "default", operateToken
	}
	return c
}
