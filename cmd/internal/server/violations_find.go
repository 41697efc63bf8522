// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/metehq/mete/api"
	"github.com/metehq/mete/httpapi"
	"github.com/metehq/mete/pgstore"
	"github.com/metehq/mete/pgstore/violations"
	"github.com/metehq/mete/store"
)

const (
	// findersConns bounds the connections for all queries. Writing uses other connections.
	findersConns = 2

	// findersIdle is how long a connection stays open without a query.
	findersIdle = time.Minute

	// findersTimeout bounds a query, in the database as well.
	findersTimeout = 5 * time.Second
)

// A violationReader finds violations for the API. Its first query opens the connections.
type violationReader struct {
	log    *violationLog
	busy   chan struct{}   // held while opening or closing the connections
	from   *finder         // nil until the first query
	shut   func()          // closes the connections
	done   context.Context // ends with the server
	end    context.CancelFunc
	ending sync.Once
	said   atomic.Int64 // Unix nanoseconds of the last log line
}

// A finder is a reader with the features of its table.
type finder struct {
	*violations.Reader
	raw bool
}

func newViolationReader(l *violationLog) *violationReader {
	f := &violationReader{log: l, busy: make(chan struct{}, 1), shut: func() {}}
	f.done, f.end = context.WithCancel(context.Background())
	return f
}

// close closes the connections. Later queries fail.
func (f *violationReader) close() {
	f.ending.Do(func() {
		f.end()
		f.busy <- struct{}{} // keeps queries from opening them again
		f.shut()
	})
}

// finder returns the reader. The first call opens the connections.
func (f *violationReader) finder(ctx context.Context) (*finder, error) {
	select {
	case f.busy <- struct{}{}:
	case <-ctx.Done():
		return nil, httpapi.ErrViolationsSlow
	case <-f.done.Done():
		return nil, httpapi.ErrViolationsUnavailable
	}
	defer func() { <-f.busy }()
	if f.from != nil {
		return f.from, nil
	}
	options := f.log.options.Copy()
	options.MaxConns, options.MinConns, options.MinIdleConns, options.MaxConnIdleTime = findersConns, 0, 0, findersIdle
	pool, err := pgstore.Dial(ctx, options)
	if err != nil {
		return nil, err
	}
	c := f.log.config
	switch {
	case len(c.Key) > 0:
	case c.Raw: // the database has no hashes; masked keys stay equal while the server runs
		c.Key = []byte(rand.Text())
	default:
		if c.Key, err = violations.DeriveKey(ctx, pool, c.Schema); err != nil {
			pool.Close()
			return nil, err
		}
	}
	reader, err := violations.NewReader(pool, violations.Config{Schema: c.Schema, Key: c.Key, Timeout: findersTimeout})
	if err != nil {
		pool.Close()
		return nil, err
	}
	f.from, f.shut = &finder{reader, c.Raw}, func() { closeWithin(pool, recorderCloseTimeout) }
	return f.from, nil
}

func (f *violationReader) List(ctx context.Context, filter httpapi.ViolationFilter) (rows []api.Violation, err error) {
	err = f.query(ctx, filter, func(ctx context.Context, from *finder, q violations.Query) error {
		found, err := from.List(ctx, q)
		for i := range found {
			if !filter.SeeKeys {
				found[i] = from.Mask(found[i])
			}
			rows = append(rows, found[i].Row())
		}
		return err
	})
	return rows, err
}

func (f *violationReader) Histogram(ctx context.Context, filter httpapi.ViolationFilter) (shown api.ViolationHistogram, err error) {
	err = f.query(ctx, filter, func(ctx context.Context, from *finder, q violations.Query) error {
		h, err := from.Histogram(ctx, q)
		if err != nil {
			return err
		}
		shown = api.ViolationHistogram{Start: h.Start.Unix(), Step: int64(h.Step / time.Second), Bins: h.Bins, Rules: h.Rules, Rows: h.Rows}
		for _, s := range h.Series {
			if s.Rule == violations.Others {
				s.Rule = ""
			}
			shown.Series = append(shown.Series, api.ViolationSeries{Rule: s.Rule, Denied: s.Denials, Shadow: s.Shadow})
		}
		return nil
	})
	return shown, err
}

// query runs a query and translates its errors for the API.
func (f *violationReader) query(ctx context.Context, filter httpapi.ViolationFilter, do func(context.Context, *finder, violations.Query) error) error {
	ctx, cancel := context.WithTimeout(ctx, 2*findersTimeout) // one half for connecting
	defer cancel()
	defer context.AfterFunc(f.done, cancel)()
	from, err := f.finder(ctx)
	if err == nil && from.raw && !filter.SeeKeys && (filter.Key != "" || filter.User != "") {
		field := "key"
		if filter.Key == "" {
			field = "user"
		}
		return &httpapi.FilterError{Field: field, Detail: "keys are stored in plain text (violations_raw), so a search for a masked key fails; sign in with a token that has the role operate"}
	}
	if err == nil {
		err = do(ctx, from, newQuery(&filter))
	}
	if err == nil {
		return nil
	}
	f.logError(ctx, err)
	switch _, refused := errors.AsType[*pgconn.PgError](err); {
	case errors.Is(err, violations.ErrTimeout):
		return fmt.Errorf("%w: %w", httpapi.ErrViolationsSlow, err)
	case errors.Is(err, store.ErrUnavailable) || !refused || isUndefined(err):
		return fmt.Errorf("%w: %w", httpapi.ErrViolationsUnavailable, err)
	}
	return fmt.Errorf("server: violations: %w", err)
}

func newQuery(f *httpapi.ViolationFilter) violations.Query {
	q := violations.Query{
		Since: f.From, Until: f.To, Rule: f.Rule, Reason: f.Reason, Key: f.Key, User: f.User, Network: f.Network, Endpoint: f.Endpoint,
		After: violations.Position(f.After), Limit: f.Limit,
	}
	switch f.Mode {
	case "enforced":
		q.Mode = violations.ModeEnforced
	case "shadow":
		q.Mode = violations.ModeShadow
	}
	return q
}

// isUndefined reports whether the error means that the tables do not exist yet. The recorder creates them.
func isUndefined(err error) bool {
	const table, schema = "42P01", "3F000"
	e, ok := errors.AsType[*pgconn.PgError](err)
	return ok && (e.Code == table || e.Code == schema)
}

// logError logs, at a limited rate, errors that the response does not show.
func (f *violationReader) logError(ctx context.Context, err error) {
	if errors.Is(ctx.Err(), context.Canceled) {
		return // the client has disconnected
	}
	now, last := time.Now(), f.said.Load()
	if now.Sub(time.Unix(0, last)) >= errorInterval && f.said.CompareAndSwap(last, now.UnixNano()) {
		f.log.log.Warn("cannot read violations", "err", err)
	}
}
