// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/cmd/internal/trace"
	"github.com/metehq/mete/memstore"
	"github.com/metehq/mete/policy"
)

// NewStore makes a store. It must take its time from now, which is at the first
// request's from the start, and may step back.
type NewStore func(now func() bucket.Instant) (mete.Store, error)

// A clock stands at the time of the request that is decided. A store may ask it
// from another goroutine.
type clock struct{ micros atomic.Int64 }

func (c *clock) set(at bucket.Instant) { c.micros.Store(int64(at)) }

func (c *clock) now() bucket.Instant { return bucket.Instant(c.micros.Load()) }

// A side decides by one policy, with a store of its own.
type side struct {
	policy  *policy.Matcher
	store   NewStore
	clock   *clock
	limiter *mete.Limiter // nil before the first request
}

// take decides a request that came now.
func (s *side) take(ctx context.Context, from Source, req *trace.Request) (d mete.Decision, err error) {
	if s.limiter == nil {
		if err := s.begin(); err != nil {
			return d, err
		}
	}
	d, err = s.limiter.Take(ctx, mete.Request{Attributes: req, Cost: mete.TokensOf(req.Cost)})
	if err == nil && d.Degraded {
		err = fmt.Errorf("the store could not decide: %w", d.Err)
	}
	if err != nil {
		return d, fmt.Errorf("after line %d: %w", from.Line(), err)
	}
	return d, nil
}

// begin makes the store and its limiter. Where the store fails, so does the
// replay, whatever rules say then; but those that say local must have a store.
// Overrides expire in the time of the trace as well.
func (s *side) begin() error {
	store, err := s.store(s.clock.now)
	if err != nil {
		return err
	}
	local, err := memstore.New(memstore.Config{})
	if err != nil {
		return err
	}
	s.limiter, err = mete.New(store, s.policy, mete.Config{Local: local, Now: s.clock.now})
	return err
}
