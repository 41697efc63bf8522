// SPDX-License-Identifier: Apache-2.0

// Package server implements mete serve. [New] opens a server as a list of components, from the store to the
// listeners. [Server.Run] starts them in the order of their dependencies and stops them in reverse.
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

// A Server is a running limiter with its store, policy and listeners. [New] creates it, and [Server.Run] runs it
// once.
type Server struct {
	log        *slog.Logger
	timeouts   config.Timeouts
	components components
	failed     chan error // errors of listeners, with a buffer for all of them
	ending     atomic.Bool

	metrics     *metrics.Registry
	limiter     *mete.Limiter
	reloads     *reloads
	main, admin net.Addr
	grpc, resp  net.Addr // nil: off
	tokenFile   string
	link        func() string
}

// New opens the store, loads the policy and opens both addresses, so that it reports all errors before the server
// accepts a request. The error is a [policyyaml.Errors] or a [rules.Errors] for an invalid policy. It wraps
// [store.ErrUnavailable] if the store does not answer for a while or ctx ends. The caller must call Run or Close.
func New(ctx context.Context, c config.Config, log *slog.Logger) (*Server, error) {
	s := &Server{log: log, timeouts: c.Timeouts, failed: make(chan error, maxListeners), metrics: metrics.New(), reloads: newReloads()}
	a := assembly{Server: s, config: c}
	if err := a.assemble(ctx); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// Close releases the resources of a server that does not run.
func (s *Server) Close() {
	s.ending.Store(true)
	ctx, cancel := context.WithTimeout(context.Background(), s.timeouts.Drain)
	defer cancel()
	if err := s.components.stop(ctx); err != nil {
		s.log.Warn("server not closed cleanly", "err", err)
	}
}

// Addr returns the main address with the actual port.
func (s *Server) Addr() net.Addr { return s.main }

// AdminAddr returns the address of the admin API with the actual port.
func (s *Server) AdminAddr() net.Addr { return s.admin }

// TokenFile returns the file with the token that the server generated, or "" if admin_tokens is set.
func (s *Server) TokenFile() string { return s.tokenFile }

// DashboardLink returns a link that signs in once to the dashboard, or "" if the server generated no token.
func (s *Server) DashboardLink() string { return s.link() }

func (s *Server) Policy() *policy.Matcher { return s.limiter.Policy() }

// AddLogMetrics adds the statistics of the log pipe to the metrics.
func (s *Server) AddLogMetrics(pipe *logpipe.Writer) { s.metrics.Add(metrics.Log(pipe.Stats)) }

// Run serves until ctx ends or a listener fails, then stops all components within [config.Timeouts]. It returns
// nil if ctx ended it and nothing failed.
func (s *Server) Run(ctx context.Context) error {
	if s.ending.Load() {
		return errors.New("server: run: the server is closed")
	}
	err := s.components.start(ctx)
	if err == nil {
		notifyManager(s.log, managerReady)
		select {
		case <-ctx.Done():
		case err = <-s.failed:
		}
		notifyManager(s.log, managerStopping)
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

var errStopping = errors.New("the server is stopping")

// checkReady returns why the server should receive no traffic, or nil.
func (s *Server) checkReady(ctx context.Context) error {
	if s.ending.Load() {
		return errStopping
	}
	return s.components.health(ctx)
}

// giveNotice waits for timeouts.notice, so that load balancers notice status 503 from /readyz. It returns early
// with the error if a listener fails.
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
