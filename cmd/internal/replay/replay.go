// SPDX-License-Identifier: Apache-2.0

// Package replay runs recorded traffic through a policy, or through two to
// compare them. The clock of the store stands at the time of the request that is
// decided. So the decisions are exactly the decisions at that time, however fast
// the replay is.
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
	// Next returns the next request, which is valid until the following call. The
	// error is io.EOF at the end, and a [*trace.LineError] for a line that cannot
	// be read, after which it can be called again.
	Next() (*trace.Request, error)

	// Line is the number of the line read last.
	Line() int
}

// NewStore makes a store that takes its time from now. The time begins with the first request
// and may step back. A store may call now from any goroutine.
type NewStore func(now func() bucket.Instant) (mete.Store, error)

// Config configures [Run]. All fields but Invalid are required.
type Config struct {
	Policy *policy.Matcher
	Trace  Source
	Store  NewStore

	// Each is called with every request and its decision, in the order of the trace. It must
	// keep neither. Its error ends the replay.
	Each func(*trace.Request, *mete.Decision) error

	// Invalid is called with every line that cannot be read, and the replay continues with the
	// next line. If nil, the first such line ends the replay with its error.
	Invalid func(*trace.LineError)
}

// Run takes every request of a trace, one after the other. It holds one request in memory at a
// time, beside what the store keeps. A line that cannot be read is a [*trace.LineError].
func Run(ctx context.Context, c Config) error {
	return run(ctx, c.Trace, c.Store, c.Invalid, func(req *trace.Request, d []mete.Decision) error { return c.Each(req, &d[0]) }, c.Policy)
}

// CompareConfig configures [Compare]. All fields but Invalid are required.
type CompareConfig struct {
	Old, New *policy.Matcher
	Trace    Source
	Store    NewStore // called twice: each policy has a store of its own

	// Each is called with every request and the two decisions, in the order of the trace. It
	// must keep none of them. Its error ends the replay.
	Each func(req *trace.Request, old, new *mete.Decision) error

	Invalid func(*trace.LineError) // as in [Config]
}

// Compare takes every request of a trace under two policies that do not affect each other, as
// [Run] does under one.
func Compare(ctx context.Context, c CompareConfig) error {
	each := func(req *trace.Request, d []mete.Decision) error { return c.Each(req, &d[0], &d[1]) }
	return run(ctx, c.Trace, c.Store, c.Invalid, each, c.Old, c.New)
}

// run decides each request under all policies. It makes their limiters at the first request.
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

// newLimiter makes a limiter with a store of its own. If the store fails, so does the replay,
// whatever on_store_error is. The local store is for rules with on_store_error: local. Overrides expire in the
// time of the trace.
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
