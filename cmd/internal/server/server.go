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
	"github.com/metehq/mete/cmd/internal/metrics"
	"github.com/metehq/mete/httpapi"
	"github.com/metehq/mete/jwtclaims"
	"github.com/metehq/mete/overrides"
	"github.com/metehq/mete/policy"
)

// adminGrace is how long requests to the admin address have to finish once the
// main address is done: they are short.
const adminGrace = time.Second

// A Server is the limiter as a process: two addresses, a policy that is
// reloaded and a store. [New] makes it, [Server.Run] runs it once.
type Server struct {
	config    config.Config
	log       *slog.Logger
	limiter   *mete.Limiter
	api       *httpapi.API // of the main address
	manage    *httpapi.API // of the admin address
	source    source
	store     storage
	claims    *jwtclaims.Verifier // nil: tokens are not verified
	expiry    *time.Timer         // nil: the policy has no expires_at
	overrides *overrides.Manager
	trail     *trail // nil: violations are not recorded
	metrics   *metrics.Registry
	reload    chan reloading
	reloads   reloads
	ending    atomic.Bool // told to end: not ready any more
	main      endpoint
	admin     endpoint
}

// New opens the store, reads the policy and opens both addresses, so that whatever
// is wrong is known before anything is served. A broken policy is a
// [policyfile.Errors] or a [rules.Errors]; where a store does not answer for a while, or ctx ends, the
// error wraps [mete.ErrUnavailable]. The server must be run or closed.
func New(ctx context.Context, c config.Config, log *slog.Logger) (*Server, error) {
	s := &Server{config: c, log: log, reload: make(chan reloading, 1)}
	if err := s.openStore(ctx); err != nil {
		return nil, err
	}
	var err error
	if s.trail, err = openTrail(ctx, c, log); err == nil {
		err = s.begin(ctx)
	}
	if err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// begin does what New promises once there is a store.
func (s *Server) begin(ctx context.Context) error {
	s.source = s.newSource()
	m, err := s.source.load(ctx)
	if err != nil {
		return err
	}
	if err := s.openClaims(ctx); err != nil {
		return err
	}
	s.metrics = metrics.New(s.sources())
	s.limiter, err = mete.New(s.store.Store, m, mete.Config{OnDecision: s.onDecision(), OnDenial: s.trail.hook(), Local: s.store.local, Nodes: s.store.nodes})
	if err != nil {
		return err
	}
	if err := s.openOverrides(ctx, m); err != nil {
		return err
	}
	if err := s.open(); err != nil {
		return err
	}
	s.warn(m)
	s.watchExpiry(m)
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
	s.trail.close() // first: it has something to save
	if store, ok := s.store.Store.(io.Closer); ok {
		store.Close() // what it could not give back, it has given up
	}
	if s.source != nil {
		s.source.close()
	}
	if s.claims != nil {
		s.claims.Close()
	}
	if s.expiry != nil {
		s.expiry.Stop()
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

// Run serves until ctx ends or an address fails, then ends in good order: see
// [config.Timeouts]. It returns nil where it ended because ctx did.
func (s *Server) Run(ctx context.Context) error {
	var serving sync.WaitGroup
	failed := make(chan error, 2) // one for each endpoint
	for _, e := range []*endpoint{&s.main, &s.admin} {
		serving.Go(func() { failed <- e.serve() })
	}
	watching, stop := context.WithCancel(ctx)
	serving.Go(func() { s.source.follow(watching, s.reload) })
	serving.Go(func() { s.overrides.Follow(watching) })
	serving.Go(func() { s.store.saver.run(watching) })
	serving.Go(func() { s.recoverLoop(watching) })
	serving.Go(func() { s.trail.run(watching) })

	var err error
	select {
	case <-ctx.Done():
	case err = <-failed:
	}
	s.drain(err == nil)
	stop()
	serving.Wait()
	s.recoverLast()
	err = errors.Join(err, s.store.saver.end())
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
