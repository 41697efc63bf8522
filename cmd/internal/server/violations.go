// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/metehq/mete"
	"github.com/metehq/mete/cmd/internal/metrics"
	"github.com/metehq/mete/internal/follow"
	"github.com/metehq/mete/pgstore"
	"github.com/metehq/mete/pgstore/violations"
	"github.com/metehq/mete/store"
)

const (
	// recorderTimeout is how long a starting server waits for the violations database. After that the server
	// starts, and connects later.
	recorderTimeout  = 3 * time.Second
	recorderInterval = 2 * time.Second

	// recorderConns allows one connection for writing and one that is being replaced.
	recorderConns = 2

	// recorderCloseTimeout bounds the closing of connections after the last write. pgx would wait 15 s for a
	// database that hangs.
	recorderCloseTimeout = time.Second
)

// A violationLog records violations once the database answers.
type violationLog struct {
	log      *slog.Logger // with the database
	options  *pgxpool.Config
	config   violations.Config
	pool     *pgxpool.Pool                       // nil until connected
	recorder atomic.Pointer[violations.Recorder] // nil until connected
	missed   atomic.Int64                        // denials before the connection
}

// addViolations connects to the violations database. If the database does not answer, the component retries in the
// background.
func (a *assembly) addViolations(ctx context.Context) error {
	c := a.config
	options := c.Violations.Postgres.Options.Copy()
	options.MaxConns, options.MinConns, options.MinIdleConns = recorderConns, 0, 0
	l := &violationLog{log: a.log.With("database", c.Violations.String()), options: options, config: violations.Config{
		Schema: c.Violations.Postgres.Config.Schema, Key: []byte(c.HashKey), Raw: c.ViolationsRaw, UserAttribute: c.ViolationsUser,
		Retention: c.ViolationsRetention, Logger: a.log,
	}}
	connecting, cancel := context.WithTimeout(ctx, recorderTimeout)
	defer cancel()
	run := l.run
	switch err := l.connect(connecting); {
	case err == nil:
		run = func(context.Context) {}
	case errors.Is(err, store.ErrUnavailable) || connecting.Err() != nil:
		l.log.Error("violations database unreachable, violations not recorded until it answers", "err", err)
	default:
		return fmt.Errorf("violations: %w", err)
	}
	reader := newViolationReader(l)
	recording := background("violations", run)
	stop := recording.Stop
	recording.Stop = func(ctx context.Context) error {
		err := stop(ctx)
		reader.close()
		l.close()
		return err
	}
	a.add(recording)
	a.metrics.Add(metrics.Violations(l.stats))
	a.onDenial = append(a.onDenial, l.record)
	a.addAttributes("ip:address", "method", "path", c.ViolationsUser)
	a.live.Violations = reader
	return nil
}

// connect creates the tables and the recorder.
func (l *violationLog) connect(ctx context.Context) error {
	pool, err := pgstore.Dial(ctx, l.options.Copy())
	if err != nil {
		return err
	}
	recorder, err := l.begin(ctx, pool)
	if err != nil {
		pool.Close()
		return err
	}
	l.pool = pool
	l.recorder.Store(recorder)
	l.log.Info("violations recorded", "raw", l.config.Raw, "missed", l.missed.Load())
	return nil
}

func (l *violationLog) begin(ctx context.Context, pool *pgxpool.Pool) (*violations.Recorder, error) {
	if err := pgstore.Migrate(ctx, pool, l.config.Schema); err != nil {
		return nil, err
	}
	c := l.config
	if len(c.Key) == 0 && !c.Raw {
		var err error
		if c.Key, err = violations.DeriveKey(ctx, pool, c.Schema); err != nil {
			return nil, err
		}
	}
	return violations.New(pool, c)
}

// connected returns the recorder, and whether the database has answered.
func (l *violationLog) connected() (r *violations.Recorder, ok bool) {
	r = l.recorder.Load()
	return r, r != nil
}

// record is a hook of the limiter.
func (l *violationLog) record(ctx context.Context, d *mete.Denial) {
	if r, ok := l.connected(); ok {
		r.Record(ctx, d)
		return
	}
	l.missed.Add(1)
}

func (l *violationLog) run(ctx context.Context) {
	failed := limitErrors(l.log, "violations not recorded")
	ctx, end := context.WithCancel(ctx)
	defer end()
	follow.Every(ctx, recorderInterval, func() {
		switch err := l.connect(ctx); {
		case err == nil:
			end()
		case ctx.Err() == nil:
			failed(err)
		}
	})
}

// stats returns the counts of the recorder. They include denials before it was connected.
func (l *violationLog) stats() (s violations.Stats) {
	missed := l.missed.Load()
	if r, ok := l.connected(); ok {
		s = r.Stats()
	}
	s.Recorded += missed
	s.Dropped += missed
	return s
}

// close writes the remaining violations and logs how many could not be written.
func (l *violationLog) close() {
	r, ok := l.connected()
	if !ok {
		return
	}
	if err := r.Close(); err != nil {
		l.log.Warn("violations missing from the database", "err", err)
	}
	closeWithin(l.pool, recorderCloseTimeout)
}

// closeWithin closes a pool and waits at most the given time for its connections.
func closeWithin(pool *pgxpool.Pool, most time.Duration) {
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		pool.Close()
	}()
	select {
	case <-closed:
	case <-time.After(most):
	}
}
