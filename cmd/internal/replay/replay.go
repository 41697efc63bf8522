// SPDX-License-Identifier: Apache-2.0

// Package replay runs recorded traffic through a policy, or through two policies to compare them. The clock of the
// store follows the timestamps of the requests, so the decisions do not depend on the speed of the replay.
package replay

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/cmd/internal/trace"
	"github.com/metehq/mete/memstore"
	"github.com/metehq/mete/policy"
)

// A Source reads requests: a [trace.Reader] or [trace.Sequence].
type Source interface {
	// Next returns the next request, which is valid until the following call. It returns io.EOF at the end and a
	// [*trace.LineError] for an invalid line. After a LineError it can be called again.
	Next() (*trace.Request, error)

	// Line returns the number of the last line.
	Line() int
}

// NewStore creates a store with the clock now. The clock starts at the first request and may go backward. A store
// may call now from any goroutine.
type NewStore func(now func() bucket.Instant) (mete.Store, error)

// Config configures [Run]. All fields except Invalid are required.
type Config struct {
	Policy *policy.Matcher
	Trace  Source
	Store  NewStore

	// Each is called for every request and its decision, in the order of the trace. It must not retain them. An
	// error from Each ends the replay.
	Each func(*trace.Request, *mete.Decision) error

	// Invalid is called for every invalid line, and the replay continues. If Invalid is nil, the first invalid
	// line ends the replay with its error.
	Invalid func(*trace.LineError)
}

// Run decides every request of a trace in order. Besides the store, it keeps only one request in memory. An invalid line
// is a [*trace.LineError].
func Run(ctx context.Context, c Config) error {
	return run(ctx, c.Trace, c.Store, c.Invalid, func(req *trace.Request, d []mete.Decision) error { return c.Each(req, &d[0]) }, c.Policy)
}

// CompareConfig configures [Compare]. All fields except Invalid are required.
type CompareConfig struct {
	Old, New *policy.Matcher
	Trace    Source
	Store    NewStore // called twice, once per policy

	// Each is called for every request and both decisions, in the order of the trace. It must not retain them. An
	// error from Each ends the replay.
	Each func(req *trace.Request, old, new *mete.Decision) error

	Invalid func(*trace.LineError) // as in [Config]
}

// Compare decides every request of a trace under two independent policies, like [Run] for each.
func Compare(ctx context.Context, c CompareConfig) error {
	each := func(req *trace.Request, d []mete.Decision) error { return c.Each(req, &d[0], &d[1]) }
	return run(ctx, c.Trace, c.Store, c.Invalid, each, c.Old, c.New)
}

// run decides each request under all policies. It creates their limiters at the first request.
func run(ctx context.Context, from Source, store NewStore, invalid func(*trace.LineError), each func(*trace.Request, []mete.Decision) error, policies ...*policy.Matcher) error {
	var micros atomic.Int64
	now := func() bucket.Instant { return bucket.Instant(micros.Load()) }
	var limiters []*mete.Limiter
	decisions := make([]mete.Decision, len(policies))
	for {
		req, err := from.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if bad, ok := errors.AsType[*trace.LineError](err); ok && invalid != nil {
			invalid(bad)
			continue
		}
		if err != nil {
			return err
		}
		micros.Store(int64(req.At))
		for i, m := range policies {
			if len(limiters) == i {
				limiter, err := newLimiter(m, store, now)
				if err != nil {
					return err
				}
				limiters = append(limiters, limiter)
			}
			d, err := limiters[i].Take(ctx, mete.Request{Attributes: req, Cost: mete.TokensOf(req.Cost)})
			if err == nil && d.Degraded {
				err = fmt.Errorf("the store could not decide: %w", d.Err)
			}
			if err != nil {
				return fmt.Errorf("after line %d: %w", from.Line(), err)
			}
			decisions[i] = d
		}
		if err := each(req, decisions); err != nil {
			return err
		}
	}
}

// newLimiter returns a limiter with its own store. A store failure ends the replay, regardless of on_store_error.
// The local store is for rules with on_store_error: local. Overrides expire in the time of the trace.
func newLimiter(m *policy.Matcher, newStore NewStore, now func() bucket.Instant) (*mete.Limiter, error) {
	store, err := newStore(now)
	if err != nil {
		return nil, err
	}
	local, err := memstore.New(memstore.Config{})
	if err != nil {
		return nil, err
	}
	return mete.New(store, m, mete.Config{Local: local, Now: now})
}
