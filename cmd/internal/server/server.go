// SPDX-License-Identifier: Apache-2.0

// Package server is mete serve: it puts the store, the policy and the front
// doors together, and begins and ends in good order.
package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/cmd/internal/config"
	"github.com/metehq/mete/httpapi"
	"github.com/metehq/mete/memstore"
	"github.com/metehq/mete/policy"
)

// adminGrace is how long requests to the admin address have to finish once the
// main address is done: they are short.
const adminGrace = time.Second

// A Server is the limiter as a process: two addresses, a policy that is
// reloaded and a store. [New] makes it, [Server.Run] runs it once.
type Server struct {
	config  config.Config
	log     *slog.Logger
	limiter *mete.Limiter
	api     *httpapi.API // of the main address
	manage  *httpapi.API // of the admin address
	source  source
	saver   *saver // nil: the buckets are not saved
	reload  chan struct{}
	ending  atomic.Bool // told to end: not ready any more
	main    endpoint
	admin   endpoint
}

// New opens the store, reads the policy and opens both addresses, so that whatever
// is wrong is known before anything is served. A broken policy is a
// [policyfile.Errors]. The server must be run or closed.
func New(c config.Config, log *slog.Logger) (*Server, error) {
	s := &Server{config: c, log: log, reload: make(chan struct{}, 1)}
	store, err := s.openStore()
	if err != nil {
		return nil, err
	}
	s.source = source{path: c.Policy, log: log, apply: s.apply}
	s.source.opts.HashKey = s.hashKey(store)
	m, err := s.source.load()
	if err != nil {
		return nil, err
	}
	if s.limiter, err = mete.New(store, m, mete.Config{OnDecision: s.onDecision(store)}); err != nil {
		return nil, err
	}
	if err := s.open(); err != nil {
		s.Close()
		return nil, err
	}
	s.warn(m)
	return s, nil
}

// hashKey is the key of the hashes in bucket keys: the one that is set, or one
// that lives as long as the buckets. Nil is one that lives as long as the process.
func (s *Server) hashKey(store *memstore.Store) []byte {
	switch {
	case s.config.HashKey != "":
		return []byte(s.config.HashKey)
	case s.saver != nil:
		key := store.DeriveKey("hashes in bucket keys")
		return key[:]
	}
	return nil
}

// open builds the handlers and listens.
func (s *Server) open() (err error) {
	main, admin, err := s.handlers()
	if err != nil {
		return err
	}
	mainTimeout := s.config.Timeouts.APIRequest
	if s.config.Upstream != "" {
		mainTimeout = 0
	}
	s.main.server = newHTTPServer(s.config, s.log, main, mainTimeout)
	s.admin.server = newHTTPServer(s.config, s.log, admin, s.config.Timeouts.APIRequest)
	if s.main.listener, err = listen("listen", s.config.Listen); err != nil {
		return err
	}
	s.admin.listener, err = listen("admin-listen", s.config.AdminListen)
	return err
}

// Close releases what New opened, for a server that is not run.
func (s *Server) Close() {
	if store, ok := s.limiter.Store().(io.Closer); ok {
		store.Close()
	}
	for _, e := range []endpoint{s.main, s.admin} {
		if e.listener != nil {
			e.listener.Close()
		}
	}
}

// Addr is the main address, with its true port.
func (s *Server) Addr() net.Addr { return s.main.listener.Addr() }

// AdminAddr is the address of the admin API, with its true port.
func (s *Server) AdminAddr() net.Addr { return s.admin.listener.Addr() }

// Policy returns the policy in force.
func (s *Server) Policy() *policy.Matcher { return s.limiter.Policy() }

// Reload has the policy read again, changed or not. It does not wait for it,
// and may be called from any goroutine.
func (s *Server) Reload() {
	select {
	case s.reload <- struct{}{}:
	default: // one is due already
	}
}

// apply puts a policy in force.
func (s *Server) apply(m *policy.Matcher) error {
	if old := s.limiter.Policy().Version(); m.Version() < old {
		s.log.Warn("the new policy has a lower bundle_version than the old one", "old", old, "new", m.Version())
	}
	if err := s.limiter.SetPolicy(m); err != nil {
		return err
	}
	s.warn(m)
	return nil
}

// warn says what is right in a policy and yet worth a look, and loudly what
// claims are worth.
func (s *Server) warn(m *policy.Matcher) {
	for _, w := range m.Warnings() {
		s.log.Warn("policy: " + w)
	}
	switch {
	case s.config.TrustJWT:
		s.log.Warn("claims in bearer tokens are NOT VERIFIED (trust_jwt): anybody can claim anything, " +
			"unless something in front of this server checks every token")
	case m.Uses(policy.JWT):
		s.log.Warn("the policy reads claims (jwt:), and no request has any: tokens are not verified here yet; " +
			"--trust-jwt believes them as they are")
	}
}

// Run serves until ctx ends or an address fails, then ends in good order: see
// [config.Timeouts]. It returns nil where it ended because ctx did.
func (s *Server) Run(ctx context.Context) error {
	var serving sync.WaitGroup
	failed := make(chan error, 2) // one for each endpoint
	for _, e := range []*endpoint{&s.main, &s.admin} {
		serving.Go(func() { failed <- e.serve() })
	}
	watching, stop := context.WithCancel(ctx)
	serving.Go(func() { s.watch(watching) })
	serving.Go(func() { s.saver.run(watching) })

	var err error
	select {
	case <-ctx.Done():
	case err = <-failed:
	}
	s.drain(err == nil)
	stop()
	serving.Wait()
	err = errors.Join(err, s.saver.end())
	s.log.Info("ended")
	s.Close()
	close(failed)
	for e := range failed {
		err = errors.Join(err, e)
	}
	if err != nil {
		return fmt.Errorf("server: %w", err)
	}
	return nil
}

// drain ends both endpoints. The admin address stays until the main one is
// done, so that /readyz can be asked there to the last.
func (s *Server) drain(notice bool) {
	s.ending.Store(true)
	s.api.Drain()
	s.manage.Drain()
	t := s.config.Timeouts
	s.log.Info("ending: not ready any more", "notice", t.Notice, "drain", t.Drain)
	if notice && t.Notice > 0 {
		<-time.After(t.Notice)
	}
	s.shutdown(&s.main, t.Drain)
	s.shutdown(&s.admin, adminGrace)
}

// shutdown ends one endpoint and says so if requests were cut off.
func (s *Server) shutdown(e *endpoint, grace time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), grace)
	defer cancel()
	if !e.shutdown(ctx) {
		s.log.Warn("requests were cut off: they had not finished in time", "address", e.listener.Addr().String(), "after", grace)
	}
}

// watch reads the policy again when its file changes and when asked to.
func (s *Server) watch(ctx context.Context) {
	var tick <-chan time.Time
	if s.config.ReloadInterval > 0 {
		ticker := time.NewTicker(s.config.ReloadInterval)
		defer ticker.Stop()
		tick = ticker.C
	}
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick:
			s.source.poll(false)
		case <-s.reload:
			s.source.poll(true)
		}
	}
}
