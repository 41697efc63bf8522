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
	"github.com/metehq/mete/cmd/internal/config"
	"github.com/metehq/mete/pgstore"
	"github.com/metehq/mete/pgstore/violations"
	"github.com/metehq/mete/store"
)

const (
	// trailPatience is how long a server that starts waits for the database of the
	// violations. It starts without, and connects later.
	trailPatience = 3 * time.Second
	trailInterval = 2 * time.Second

	// trailConns is enough: one writes, one may be broken.
	trailConns = 2

	// trailClosing is how long a server that ends waits for connections to end, once
	// all is written. pgx would wait 15 s for a database that hangs.
	trailClosing = time.Second
)

// A trail records violations as soon as their database answers. A nil one does
// nothing.
type trail struct {
	log      *slog.Logger
	url      string
	options  *pgxpool.Config
	config   violations.Config
	pool     *pgxpool.Pool                       // nil until connected
	recorder atomic.Pointer[violations.Recorder] // nil until connected
	missed   atomic.Int64                        // denials before that
	finders  *finders                            // for the dashboard
}

// openTrail connects to the database that the settings name, if they name one. Where
// it does not answer yet, [trail.run] goes on trying.
func openTrail(ctx context.Context, c config.Config, log *slog.Logger) (*trail, error) {
	if c.Violations == nil {
		return nil, nil
	}
	options := c.Violations.Postgres.Options.Copy()
	options.MaxConns, options.MinConns, options.MinIdleConns = trailConns, 0, 0
	t := &trail{log: log, url: c.Violations.String(), options: options, config: violations.Config{
		Schema: c.Violations.Postgres.Config.Schema, Key: []byte(c.HashKey), Raw: c.ViolationsRaw, UserAttribute: c.ViolationsUser,
		Retention: c.ViolationsRetention, Logger: log,
	}}
	t.finders = newFinders(t)
	ctx, cancel := context.WithTimeout(ctx, trailPatience)
	defer cancel()
	switch err := t.connect(ctx); {
	case errors.Is(err, store.ErrUnavailable) || ctx.Err() != nil:
		log.Error("the database of the violations does not answer; they are not recorded until it does", "error", err, "database", t.url)
	case err != nil:
		return nil, fmt.Errorf("violations: %w", err)
	}
	return t, nil
}

// connect makes what the recorder needs, and the recorder.
func (t *trail) connect(ctx context.Context) error {
	pool, err := pgstore.Dial(ctx, t.options.Copy())
	if err != nil {
		return err
	}
	recorder, err := t.begin(ctx, pool)
	if err != nil {
		pool.Close()
		return err
	}
	t.pool = pool
	t.recorder.Store(recorder)
	t.log.Info("violations are recorded", "database", t.url, "raw", t.config.Raw, "missed", t.missed.Load())
	return nil
}

func (t *trail) begin(ctx context.Context, pool *pgxpool.Pool) (*violations.Recorder, error) {
	if err := pgstore.Migrate(ctx, pool, t.config.Schema); err != nil {
		return nil, err
	}
	c := t.config
	if len(c.Key) == 0 && !c.Raw {
		var err error
		if c.Key, err = violations.DeriveKey(ctx, pool, c.Schema); err != nil {
			return nil, err
		}
	}
	return violations.New(pool, c)
}

// hook is the limiter's.
func (t *trail) hook() func(context.Context, *mete.Denial) {
	if t == nil {
		return nil
	}
	return func(ctx context.Context, d *mete.Denial) {
		if r := t.recorder.Load(); r != nil {
			r.Record(ctx, d)
			return
		}
		t.missed.Add(1)
	}
}

// run tries to connect until that has worked or ctx ends.
func (t *trail) run(ctx context.Context) {
	if t == nil || t.recorder.Load() != nil {
		return
	}
	ticker := time.NewTicker(trailInterval)
	defer ticker.Stop()
	last := time.Now() // when it was last said that it does not work
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		err := t.connect(ctx)
		if err == nil || ctx.Err() != nil {
			return
		}
		if time.Since(last) >= complaintInterval {
			last = time.Now()
			t.log.Error("violations are not recorded", "error", err, "database", t.url, "missed", t.missed.Load())
		}
	}
}

// stats are those of the recorder, with what it could not be told.
func (t *trail) stats() (s violations.Stats) {
	missed := t.missed.Load()
	if r := t.recorder.Load(); r != nil {
		s = r.Stats()
	}
	s.Recorded += missed
	s.Dropped += missed
	return s
}

// close writes what is left, and says what could not be.
func (t *trail) close() {
	if t == nil {
		return
	}
	t.finders.close()
	if t.pool == nil {
		return
	}
	if err := t.recorder.Load().Close(); err != nil {
		t.log.Warn("violations are missing from the database", "error", err)
	}
	closeWithin(t.pool, trailClosing)
}

// closeWithin closes a pool, and waits for its connections no longer than so.
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
