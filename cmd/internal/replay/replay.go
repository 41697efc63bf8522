// SPDX-License-Identifier: Apache-2.0

// Package replay runs recorded traffic through a policy. The store's clock is
// the trace's: it stands at each request's own time while that is decided, so
// the decisions are those that the traffic would have met, exactly, however
// fast it is replayed.
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

// Config is what [Run] replays. All fields but Invalid are required.
type Config struct {
	Policy *policy.Matcher
	Trace  *trace.Reader

	// Store makes the store. It must take its time from now, which is at the
	// first request's from the start, and may step back.
	Store func(now func() bucket.Instant) (mete.Store, error)

	// Each is called with every request and its decision, in the order of the
	// trace. It must keep neither. Its error ends the replay.
	Each func(*trace.Request, *mete.Decision) error

	// Invalid is called with every line that cannot be read; the replay goes on
	// with the next. If nil, the first one ends it with that error.
	Invalid func(*trace.LineError)
}

// Run takes every request of a trace, one after the other. It holds one request
// in memory at a time, beside what the store keeps. A line that cannot be read
// is a [*trace.LineError].
func Run(ctx context.Context, c Config) error {
	var now atomic.Int64 // a store may ask from another goroutine
	var limiter *mete.Limiter
	for {
		req, err := next(c)
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
		now.Store(int64(req.At))
		if limiter == nil {
			store, err := c.Store(func() bucket.Instant { return bucket.Instant(now.Load()) })
			if err != nil {
				return err
			}
			if limiter, err = newLimiter(store, c.Policy); err != nil {
				return err
			}
		}
		d, err := limiter.Take(ctx, mete.Request{Attributes: req, Cost: req.Cost})
		if err == nil && d.Degraded {
			err = fmt.Errorf("the store could not decide: %w", d.Err)
		}
		if err != nil {
			return fmt.Errorf("after line %d: %w", c.Trace.Line(), err)
		}
		if err := c.Each(req, &d); err != nil {
			return err
		}
	}
}

// newLimiter returns a limiter over the store. Where that fails, so does the
// replay, whatever rules say then; but those that say local must have a store.
func newLimiter(store mete.Store, m *policy.Matcher) (*mete.Limiter, error) {
	local, err := memstore.New(memstore.Config{})
	if err != nil {
		return nil, err
	}
	return mete.New(store, m, mete.Config{Local: local})
}

// next returns the next request that can be read.
func next(c Config) (*trace.Request, error) {
	for {
		req, err := c.Trace.Next()
		if err == nil || c.Invalid == nil {
			return req, err
		}
		var bad *trace.LineError
		if !errors.As(err, &bad) {
			return nil, err
		}
		c.Invalid(bad)
	}
}
