// SPDX-License-Identifier: Apache-2.0

// Package server is mete serve: a list of components, from the store to the listeners. They
// start in the order of their dependencies and stop in reverse.
package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync/atomic"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/cmd/internal/config"
	"github.com/metehq/mete/cmd/internal/logpipe"
	"github.com/metehq/mete/cmd/internal/metrics"
	"github.com/metehq/mete/policy"
)

// A Server is the limiter as a process. [New] makes it, [Server.Run] runs it once.
type Server struct {
	log        *slog.Logger
	timeouts   config.Timeouts
	components components
	failed     chan error // of listeners that end by themselves, with room for all
	ending     atomic.Bool

	metrics     *metrics.Registry
	limiter     *mete.Limiter
	reloads     *reloads
	main, admin net.Addr
	tokenFile   string
	link        func() string
}

// New opens the store, reads the policy and opens both addresses, so that each error is known
// before anything is served. A broken policy is a [policyyaml.Errors] or a [rules.Errors].
// If a store does not answer for a while, or ctx ends, the error wraps
// [store.ErrUnavailable]. The server must be run or closed.
func New(ctx context.Context, c config.Config, log *slog.Logger) (*Server, error) {
	s := &Server{log: log, timeouts: c.Timeouts, failed: make(chan error, maxListeners), metrics: metrics.New(), reloads: newReloads()}
	a := assembly{Server: s, config: c}
	if err := a.assemble(ctx); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// Close releases what New opened, for a server that is not run.
func (s *Server) Close() {
	s.ending.Store(true)
	ctx, cancel := context.WithTimeout(context.Background(), s.timeouts.Drain)
	defer cancel()
	if err := s.components.stop(ctx); err != nil {
		s.log.Warn("server not closed cleanly", "err", err)
	}
}

// Addr is the main address, with the port that it has.
func (s *Server) Addr() net.Addr { return s.main }

// AdminAddr is the address of the admin API, with the port that it has.
func (s *Server) AdminAddr() net.Addr { return s.admin }

// TokenFile is the file with the token that the server made for itself, or empty if it made
// none.
func (s *Server) TokenFile() string { return s.tokenFile }

// DashboardLink returns a link that signs its first user in to the dashboard, with the token
// that the server made. It returns "" if the server made none.
func (s *Server) DashboardLink() string { return s.link() }

// Policy returns the active policy.
func (s *Server) Policy() *policy.Matcher { return s.limiter.Policy() }

// LogsTo adds the pipe that the log goes through to the metrics.
func (s *Server) LogsTo(pipe *logpipe.Writer) { s.metrics.Add(metrics.Log(pipe.Stats)) }

// Run serves until ctx ends or a listener fails, then stops all components: see
// [config.Timeouts]. It returns nil if ctx ended it and nothing failed.
func (s *Server) Run(ctx context.Context) error {
	if s.ending.Load() {
		return errors.New("server: run: the server is closed")
	}
	err := s.components.start(ctx)
	if err == nil {
		tellManager(s.log, managerReady)
		select {
		case <-ctx.Done():
		case err = <-s.failed:
		}
		tellManager(s.log, managerStopping)
	}
	s.ending.Store(true)
	s.log.Info("server stopping", "notice", s.timeouts.Notice, "drain", s.timeouts.Drain)
	if err == nil {
		err = giveNotice(s.timeouts.Notice, s.failed)
	}
	drain, cancel := context.WithTimeout(context.Background(), s.timeouts.Drain)
	defer cancel()
	err = errors.Join(err, s.components.stop(drain))
	s.log.Info("server stopped")
	close(s.failed)
	for e := range s.failed {
		err = errors.Join(err, e)
	}
	if err != nil {
		return fmt.Errorf("server: %w", err)
	}
	return nil
}

// errStopping is the health of a server that was told to end.
var errStopping = errors.New("the server is stopping")

// ready returns why the server should get no traffic.
func (s *Server) ready(ctx context.Context) error {
	if s.ending.Load() {
		return errStopping
	}
	return s.components.health(ctx)
}

// giveNotice waits for timeouts.notice, in which load balancers see /readyz at 503. It stops
// waiting when a listener fails, and returns its error.
func giveNotice(notice time.Duration, failed <-chan error) error {
	if notice <= 0 {
		return nil
	}
	timer := time.NewTimer(notice)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case err := <-failed:
		return err
	}
}
