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
	"github.com/metehq/mete/cmd/internal/denials"
	"github.com/metehq/mete/cmd/internal/logpipe"
	"github.com/metehq/mete/cmd/internal/metrics"
	"github.com/metehq/mete/cmd/internal/telemetry"
	"github.com/metehq/mete/httpapi"
	"github.com/metehq/mete/jwtclaims"
	"github.com/metehq/mete/monitor"
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
	watches   monitor.Watches
	store     storage
	claims    *jwtclaims.Verifier // nil: tokens are not verified
	expiry    *time.Timer         // nil: the policy has no expires_at
	overrides *overrides.Manager
	trail     *trail // nil: violations are not recorded
	gate      gate
	top       *top // nil: keys are not counted
	metrics   *metrics.Registry
	telemetry *telemetry.Telemetry // nil: no collector is told
	watch     *telemetry.Watch
	denials   *denials.Log    // nil: denials are not logged
	logPipe   *logpipe.Writer // nil: the log has none
	started   time.Time
	reload    chan reloading
	settled   chan struct{} // closed when the policy is followed no more
	reloads   reloads
	lately    lately
	skips     skipLog
	monitor   *monitor.Monitor // nil until all else is there
	opened    atomic.Bool      // all of it is there
	ending    atomic.Bool      // told to end: not ready any more
	main      endpoint
	admin     endpoint
	access    *access // to the admin address
}

// New opens the store, reads the policy and opens both addresses, so that whatever
// is wrong is known before anything is served. A broken policy is a
// [policyyaml.Errors] or a [rules.Errors]; where a store does not answer for a while, or ctx ends, the
// error wraps [store.ErrUnavailable]. The server must be run or closed.
func New(ctx context.Context, c config.Config, log *slog.Logger) (*Server, error) {
	s := &Server{config: c, log: log, started: time.Now(), reload: make(chan reloading, 1), settled: make(chan struct{})}
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
	if s.top, err = newTop(s.config.TopKeys); err != nil {
		return err
	}
	s.metrics = metrics.New(s.sources())
	s.metrics.SetPolicy(m)
	s.skips.setPolicy(m)
	if err := s.openTelemetry(ctx); err != nil {
		return err
	}
	s.openDenials()
	if err := s.openAdaptive(); err != nil {
		return err
	}
	s.limiter, err = mete.New(s.store.Store, m, mete.Config{
		OnDecision: s.onDecision(), OnDenial: tellAll(s.trail.hook(), s.logDenials(), s.top.denied()), OnNearLimit: s.top.near(),
		Local: s.store.local, Nodes: s.store.nodes, DenyFor: s.denyFor(), Scale: s.gate.scale(),
	})
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
	s.opened.Store(true)
	return nil
}

// open listens and builds the handlers.
func (s *Server) open() (err error) {
	c := s.config
	if err = s.main.open("listen", c.Listen, c.MaxConnections, c.TLS, s.log); err != nil {
		return err
	}
	if err = s.admin.open("admin-listen", c.AdminListen, adminConnections, c.AdminTLS, s.log); err != nil {
		return err
	}
	s.main.crowd, s.admin.crowd = &crowd{most: int64(c.MaxInFlight)}, &crowd{most: adminInFlight, exempt: isStream}
	if s.access, err = newAccess(c, s.AdminAddr()); s.access == nil {
		return err
	}
	if err != nil {
		s.log.Warn("nobody can change anything at the admin address: there are no admin_tokens, and the one that was made cannot be left for you", "error", err)
	}
	main, admin, err := s.handlers()
	if err != nil {
		return err
	}
	mainTimeout := c.Timeouts.APIRequest
	if s.inFront() {
		mainTimeout = 0
	}
	s.main.server = newHTTPServer(c, s.log, s.main.crowd.enter(main), mainTimeout)
	s.main.server.Protocols = mainProtocols(c)
	s.admin.server = newHTTPServer(c, s.log, s.admin.crowd.enter(admin), c.Timeouts.APIRequest)
	return nil
}

// inFront reports whether the main address is a gateway.
func (s *Server) inFront() bool { return s.config.InFront() }

// Close releases what New opened, for a server that is not run.
func (s *Server) Close() {
	if s.monitor != nil {
		s.monitor.Close()
	}
	s.trail.close() // first: it has something to save
	s.closeTelemetry()
	s.gate.close()
	if store, ok := s.store.Store.(io.Closer); ok {
		store.Close() // what it could not give back, it has given up
	}
	s.store.saver.close()
	if s.source != nil {
		s.source.close()
	}
	if s.claims != nil {
		s.claims.Close()
	}
	if s.expiry != nil {
		s.expiry.Stop()
	}
	for _, e := range []*endpoint{&s.main, &s.admin} {
		if e.listener != nil {
			e.listener.Close()
		}
	}
	if s.access != nil {
		s.access.made.Remove()
	}
}

// Addr is the main address, with its true port.
func (s *Server) Addr() net.Addr { return s.main.listener.Addr() }

// AdminAddr is the address of the admin API, with its true port.
func (s *Server) AdminAddr() net.Addr { return s.admin.listener.Addr() }

// TokenFile is where the token is that the server made for itself; empty where it
// made none.
func (s *Server) TokenFile() string { return s.access.made.Path }

// Policy returns the policy in force.
func (s *Server) Policy() *policy.Matcher { return s.limiter.Policy() }

// Run serves until ctx ends or an address fails, then ends in good order: see
// [config.Timeouts]. It returns nil where it ended because ctx did.
func (s *Server) Run(ctx context.Context) error {
	defer keepGarbage(s.config.GarbageBytes)()
	notify := newNotifier(s.log)
	defer notify.close()
	var serving sync.WaitGroup
	failed := make(chan error, 2) // one for each endpoint
	for _, e := range []*endpoint{&s.main, &s.admin} {
		serving.Go(func() { failed <- e.serve() })
	}
	watching, stop := context.WithCancel(ctx)
	serving.Go(func() {
		defer close(s.settled)
		s.source.follow(watching, s.reload)
	})
	for _, e := range []*endpoint{&s.main, &s.admin} {
		if e.certs != nil {
			serving.Go(func() { e.certs.follow(watching) })
		}
	}
	serving.Go(func() { s.followTokens(watching) })
	serving.Go(func() { s.overrides.Follow(watching) })
	serving.Go(func() { s.store.saver.run(watching) })
	serving.Go(func() { s.recoverLoop(watching) })
	serving.Go(func() { s.trail.run(watching) })
	serving.Go(func() { s.gate.run(watching) })
	serving.Go(func() { s.runDenials(watching) })
	notify.ready()

	var err error
	select {
	case <-ctx.Done():
	case err = <-failed:
	}
	notify.stopping()
	s.announceEnd()
	if err == nil {
		err = s.giveNotice(failed)
	}
	s.drain()
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

// announceEnd turns /readyz to 503, and logs that the server ends.
func (s *Server) announceEnd() {
	s.ending.Store(true)
	s.api.Drain()
	s.manage.Drain()
	t := s.config.Timeouts
	s.log.Info("ending: not ready any more", "notice", t.Notice, "drain", t.Drain)
}

// giveNotice waits for timeouts.notice. It stops waiting when an endpoint fails, and
// returns the error of that endpoint.
func (s *Server) giveNotice(failed <-chan error) error {
	if s.config.Timeouts.Notice <= 0 {
		return nil
	}
	timer := time.NewTimer(s.config.Timeouts.Notice)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case err := <-failed:
		return err
	}
}

// drain ends both endpoints. The admin address stays until the main one is
// done, so that /readyz can be asked there to the last.
func (s *Server) drain() {
	t := s.config.Timeouts
	ctx, cancel := context.WithTimeout(context.Background(), t.Drain)
	defer cancel()
	s.shutdown(ctx, &s.main, t.Drain)
	// After the requests, of which some may still have been upgraded.
	if n := s.gate.drain(ctx); n > 0 {
		s.log.Warn("upgraded connections were cut off: they had not ended in time", "connections", n, "after", t.Drain)
	}
	s.manage.Close() // its streams would never finish
	s.monitor.Close()
	ctx, cancel = context.WithTimeout(context.Background(), adminGrace)
	defer cancel()
	s.shutdown(ctx, &s.admin, adminGrace)
}

// shutdown ends one endpoint by the end of ctx, which is after grace, and says so if
// requests were cut off.
func (s *Server) shutdown(ctx context.Context, e *endpoint, grace time.Duration) {
	if !e.shutdown(ctx) {
		s.log.Warn("requests were cut off: they had not finished in time", "address", e.listener.Addr().String(), "after", grace)
	}
}
