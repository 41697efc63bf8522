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

	// Settled, if not nil, is called for each limit that the response to a request settles.
	Settled func(*policy.Settlement)
}

// Run decides every request of a trace in order. Besides the store, it keeps one request in memory, and the end of each
// request that has a duration. Without a duration, a request ends at once. An invalid line is a [*trace.LineError].
func Run(ctx context.Context, c Config) error {
	each := func(req *trace.Request, d []mete.Decision) error { return c.Each(req, &d[0]) }
	return run(ctx, c.Trace, c.Store, c.Invalid, each, c.Settled, c.Policy)
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
	return run(ctx, c.Trace, c.Store, c.Invalid, each, nil, c.Old, c.New)
}

// run decides each request under all policies. It creates their limiters at the first request.
func run(ctx context.Context, from Source, store NewStore, invalid func(*trace.LineError), each func(*trace.Request, []mete.Decision) error, settled func(*policy.Settlement), policies ...*policy.Matcher) error {
	var micros atomic.Int64
	now := func() bucket.Instant { return bucket.Instant(micros.Load()) }
	set := func(at bucket.Instant) { micros.Store(int64(at)) }
	var limiters []*mete.Limiter
	var open ongoings
	decisions := make([]mete.Decision, len(policies))
	for number := 0; ; number++ {
		req, err := from.Next()
		if errors.Is(err, io.EOF) && settled != nil {
			return open.advance(ctx, maxInstant, set)
		}
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
		if err := open.advance(ctx, req.At, set); err != nil {
			return fmt.Errorf("before line %d: %w", from.Line(), err)
		}
		set(req.At)
		for i, m := range policies {
			if len(limiters) == i {
				limiter, err := newLimiter(m, store, now, settled)
				if err != nil {
					return err
				}
				limiters = append(limiters, limiter)
			}
			d, finish, err := decide(ctx, limiters[i], req, m.AwaitsResponse())
			switch {
			case err != nil || finish == nil:
			case req.Duration == 0:
				err = finish(ctx)
			default:
				err = open.add(&ongoing{end: req.At.Add(req.Duration), order: number*len(policies) + i, slots: d.Slots, finish: finish}, req.At)
			}
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

// maxInstant is behind the end of each trace.
const maxInstant bucket.Instant = 1 << 53

// decide takes for a request. Unless finish is nil, call it at the end of the response. It releases the slots and, if the
// policy awaits responses, settles the charge by the recorded response.
func decide(ctx context.Context, l *mete.Limiter, req *trace.Request, awaits bool) (d mete.Decision, finish func(context.Context) error, err error) {
	r := mete.Request{Attributes: req, Cost: mete.TokensOf(req.Cost)}
	if !awaits {
		if d, err = l.Take(ctx, r); d.Slots == nil {
			return d, nil, err
		}
		return d, d.Slots.Release, err
	}
	reserved, err := l.Reserve(ctx, r)
	if err != nil {
		return mete.Decision{}, nil, err
	}
	if !reserved.Allowed {
		return reserved.Decision, nil, nil
	}
	response := req.Response()
	return reserved.Decision, func(ctx context.Context) error { return reserved.Finish(ctx, response) }, nil
}

// newLimiter returns a limiter with its own store. A store failure ends the replay, regardless of on_store_error.
// The local store is for rules with on_store_error: local. Overrides expire in the time of the trace.
func newLimiter(m *policy.Matcher, newStore NewStore, now func() bucket.Instant, settled func(*policy.Settlement)) (*mete.Limiter, error) {
	store, err := newStore(now)
	if err != nil {
		return nil, err
	}
	local, err := memstore.New(memstore.Config{})
	if err != nil {
		return nil, err
	}
	config := mete.Config{Local: local, Now: now}
	if settled != nil {
		config.OnSettlement = func(_ context.Context, s *policy.Settlement) { settled(s) }
	}
	return mete.New(store, m, config)
}
