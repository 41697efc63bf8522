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
	// findersConns is the number of connections for all queries together. They
	// are not those by which violations are written.
	findersConns = 2

	// findersIdle is the time that they stay open without a query.
	findersIdle = time.Minute

	// findersPatience bounds a question, in the database as well.
	findersPatience = 5 * time.Second
)

// A violationReader finds violations for the API. It has connections of its own, which the
// first query opens.
type violationReader struct {
	log    *violationLog
	busy   chan struct{}   // taken to open the connections, and to close them for good
	from   *finder         // nil until then
	shut   func()          // closes the connections
	done   context.Context // ends with the server
	end    context.CancelFunc
	ending sync.Once
	said   atomic.Int64 // when it was last logged that it does not work, in Unix nanoseconds
}

// A finder is a reader and what its table has.
type finder struct {
	*violations.Reader
	raw bool
}

func newViolationReader(l *violationLog) *violationReader {
	f := &violationReader{log: l, busy: make(chan struct{}, 1), shut: func() {}}
	f.done, f.end = context.WithCancel(context.Background())
	return f
}

// close ends the connections. Queries fail from then on.
func (f *violationReader) close() {
	f.ending.Do(func() {
		f.end()
		f.busy <- struct{}{} // and no query opens them again
		f.shut()
	})
}

// finder returns the reader, and opens the connections for the first query.
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
	case c.Raw: // nothing was hashed by it, and what is masked by it is the same while the server runs
		c.Key = []byte(rand.Text())
	default:
		if c.Key, err = violations.DeriveKey(ctx, pool, c.Schema); err != nil {
			pool.Close()
			return nil, err
		}
	}
	reader, err := violations.NewReader(pool, violations.Config{Schema: c.Schema, Key: c.Key, Timeout: findersPatience})
	if err != nil {
		pool.Close()
		return nil, err
	}
	f.from, f.shut = &finder{reader, c.Raw}, func() { closeWithin(pool, recorderClosing) }
	return f.from, nil
}

// List implements [httpapi.Violations].
func (f *violationReader) List(ctx context.Context, filter httpapi.ViolationFilter) (rows []api.Violation, err error) {
	err = f.ask(ctx, filter, func(ctx context.Context, from *finder, q violations.Query) error {
		found, err := from.List(ctx, q)
		for i := range found {
			if !filter.SeeKeys {
				found[i] = from.Masked(found[i])
			}
			rows = append(rows, found[i].Row())
		}
		return err
	})
	return rows, err
}

// Histogram implements [httpapi.Violations].
func (f *violationReader) Histogram(ctx context.Context, filter httpapi.ViolationFilter) (shown api.ViolationHistogram, err error) {
	err = f.ask(ctx, filter, func(ctx context.Context, from *finder, q violations.Query) error {
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

// ask asks the reader, and says what went wrong in the API's words.
func (f *violationReader) ask(ctx context.Context, filter httpapi.ViolationFilter, do func(context.Context, *finder, violations.Query) error) error {
	ctx, cancel := context.WithTimeout(ctx, 2*findersPatience) // the half of it to connect
	defer cancel()
	defer context.AfterFunc(f.done, cancel)()
	from, err := f.finder(ctx)
	if err == nil && from.raw && !filter.SeeKeys && (filter.Key != "" || filter.User != "") {
		field := "key"
		if filter.Key == "" {
			field = "user"
		}
		return &httpapi.FilterError{Field: field, Detail: "they are stored as they are here (violations_raw), and a masked one cannot be looked for; sign in with a token with the role operate"}
	}
	if err == nil {
		err = do(ctx, from, queryOf(&filter))
	}
	if err == nil {
		return nil
	}
	f.complain(ctx, err)
	switch _, refused := errors.AsType[*pgconn.PgError](err); {
	case errors.Is(err, violations.ErrSlow):
		return fmt.Errorf("%w: %w", httpapi.ErrViolationsSlow, err)
	case errors.Is(err, store.ErrUnavailable) || !refused || undefined(err):
		return fmt.Errorf("%w: %w", httpapi.ErrViolationsUnavailable, err)
	}
	return fmt.Errorf("server: violations: %w", err)
}

// queryOf returns a filter as the reader takes it.
func queryOf(f *httpapi.ViolationFilter) violations.Query {
	q := violations.Query{
		Since: f.From, Until: f.To, Rule: f.Rule, Reason: f.Reason, Key: f.Key, User: f.User, Network: f.Network, Endpoint: f.Endpoint,
		After: violations.Place(f.After), Limit: f.Limit,
	}
	switch f.Mode {
	case "enforced":
		q.Mode = violations.Enforced
	case "shadow":
		q.Mode = violations.InShadow
	}
	return q
}

// undefined reports whether the tables are not there: who records makes them as soon as
// it can.
func undefined(err error) bool {
	const table, schema = "42P01", "3F000"
	e, ok := errors.AsType[*pgconn.PgError](err)
	return ok && (e.Code == table || e.Code == schema)
}

// complain leaves in the log what viewers are not told, from time to time.
func (f *violationReader) complain(ctx context.Context, err error) {
	if errors.Is(ctx.Err(), context.Canceled) {
		return // who asked is gone
	}
	now, last := time.Now(), f.said.Load()
	if now.Sub(time.Unix(0, last)) >= errorInterval && f.said.CompareAndSwap(last, now.UnixNano()) {
		f.log.log.Warn("cannot read violations", "err", err)
	}
}
