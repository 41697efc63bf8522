// SPDX-License-Identifier: Apache-2.0

package ratelimit

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"sync"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/cmd/internal/buildinfo"
	"github.com/metehq/mete/cmd/internal/metrics"
	"github.com/metehq/mete/cmd/internal/telemetry"
	"github.com/metehq/mete/envoyapi/dropin"
)

// drainTimeout bounds the wait for calls in flight when the service stops.
const drainTimeout = 10 * time.Second

// A Server is the rate limit service with its listeners. Create it with [Open], and call Run once.
type Server struct {
	settings Settings
	log      *slog.Logger
	service  *dropin.Service
	target   *target
	limiter  *mete.Limiter
	store    *openedStore
	traces   *telemetry.Telemetry
	stats    *metrics.Registry

	stopping  chan struct{} // closed when Run begins to stop
	listeners []listener    // in the order in which they stop

	background sync.WaitGroup
	cancel     context.CancelFunc // ends the background work

	// Addresses of the listeners. An address is nil if it is not served.
	GRPC, HTTP, Debug, Metrics net.Addr
}

// Open connects to the store, loads the first configuration and opens the listeners. It waits for a store that does
// not answer, and for a control plane, until ctx ends.
func Open(ctx context.Context, s Settings, log *slog.Logger) (_ *Server, err error) {
	r := &Server{settings: s, log: log, stopping: make(chan struct{})}
	// The background work goes on while calls finish after the end of ctx.
	running, cancel := context.WithCancel(context.WithoutCancel(ctx))
	r.cancel = cancel
	defer func() {
		if err != nil {
			r.close()
		}
	}()
	u, err := s.storeURL()
	if err != nil {
		return nil, err
	}
	if r.store, err = openStore(ctx, &s, u, log); err != nil {
		return nil, fmt.Errorf("store %s: %w", u, err)
	}
	if err := r.store.Start(running); err != nil {
		return nil, err
	}
	if !u.Remote() {
		log.Warn("limits hold within this process only", "store", u.String())
	}
	if err := r.openService(); err != nil {
		return nil, err
	}
	if err := r.openTraces(ctx); err != nil {
		return nil, err
	}
	if err := r.loadFirst(ctx, running); err != nil {
		return nil, err
	}
	if s.Statsd && !s.DisableStats {
		r.goRun(running, newStatsdSender(&s, r.service.Counters, log).run)
	}
	return r, r.listen(running)
}

// goRun runs background work until the service ends.
func (r *Server) goRun(ctx context.Context, run func(context.Context)) {
	r.background.Go(func() { run(ctx) })
}

func (r *Server) openService() (err error) {
	s := &r.settings
	if r.limiter, err = mete.New(r.store.limits, nil, mete.Config{}); err != nil {
		return err
	}
	options := dropin.Options{
		ShadowMode: s.ShadowMode, QuotaMode: s.QuotaMode, DynamicMetadata: s.SendMetadata,
		NearLimitRatio: float32(s.NearLimit), KeyPrefix: s.KeyPrefix, StopCounting: s.AllOrNothing,
	}
	if s.Algorithm == "token_bucket" {
		options.Algorithm = dropin.TokenBucket
	}
	if s.SendHeaders {
		options.Headers = &dropin.HeaderNames{Limit: s.LimitHeader, Remaining: s.RemainsHeader, Reset: s.ResetHeader}
	}
	if r.service, err = dropin.NewService(r.limiter, options); err != nil {
		return err
	}
	r.target = newTarget(r.service)
	return nil
}

func (r *Server) openTraces(ctx context.Context) error {
	t := &r.settings.Tracing
	if !t.Enabled {
		return nil
	}
	endpoint, err := url.Parse(t.Endpoint)
	if err != nil {
		return fmt.Errorf("OTEL_EXPORTER_OTLP_ENDPOINT=%q: must be a URL such as http://localhost:4318", t.Endpoint)
	}
	r.traces, err = telemetry.New(ctx, telemetry.Config{
		Endpoint: endpoint, Sample: t.Sample, Service: t.Service, Namespace: t.Namespace, Instance: t.Instance,
		Version: buildinfo.Read().Version,
		Failed:  func(err error) { r.log.Error("spans not exported", "err", err) },
	})
	return err
}

// loadFirst starts the source of the configuration, and waits for the first one unless the settings allow a start
// without.
func (r *Server) loadFirst(ctx, running context.Context) error {
	s := &r.settings
	if s.ConfigType == "FILE" {
		source := newFileSource(s, r.target, r.log)
		err := source.load()
		switch {
		case err == nil:
			r.log.Info("configuration loaded", "directory", source.dir, "domains", r.target.countDomains())
		case !s.StartUnconfigured:
			return err
		default:
			r.log.Error("configuration invalid, every call fails until it is repaired", "directory", source.dir, "err", err)
		}
		r.goRun(running, func(ctx context.Context) { source.run(ctx, err) })
		return nil
	}
	r.goRun(running, newXDSSource(s, r.target, r.log).run)
	if s.StartUnconfigured {
		return nil
	}
	r.log.Info("waiting for the first configuration", "control_plane", s.Control.Addr)
	select {
	case <-r.target.first:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("no configuration from the control plane %s: %w", s.Control.Addr, context.Cause(ctx))
	}
}

// Run serves until ctx ends, and then finishes the calls in flight.
func (r *Server) Run(ctx context.Context) error {
	failed := make(chan error, len(r.listeners))
	var serving sync.WaitGroup
	for _, l := range r.listeners {
		serving.Go(func() {
			if err := l.serve(); err != nil {
				failed <- fmt.Errorf("%s: %w", l.name, err)
			}
		})
		r.log.Info("listening", "for", l.name, "address", l.addr.String())
	}
	var err error
	select {
	case <-ctx.Done():
		r.log.Info("stopping", "timeout", drainTimeout)
	case err = <-failed:
	}
	close(r.stopping)
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainTimeout)
	defer cancel()
	for _, l := range r.listeners {
		if stopErr := l.shutdown(ending); stopErr != nil {
			r.log.Warn("calls aborted at shutdown", "listener", l.name, "err", stopErr)
		}
	}
	serving.Wait()
	if closeErr := r.close(); closeErr != nil && err == nil {
		err = closeErr
	}
	return err
}

// close ends the background work, and releases the store and the exporter.
func (r *Server) close() error {
	r.cancel()
	for _, l := range r.listeners {
		l.release()
	}
	r.background.Wait()
	ctx, cancel := context.WithTimeout(context.Background(), drainTimeout)
	defer cancel()
	err := r.traces.Close(ctx)
	if r.store != nil {
		err = errors.Join(err, r.store.Close())
	}
	return err
}
