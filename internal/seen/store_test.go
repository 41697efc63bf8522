// SPDX-License-Identifier: Apache-2.0

package seen_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/seen"
	"github.com/metehq/mete/memstore"
	"github.com/metehq/mete/store"
	"github.com/metehq/mete/storetest"
)

// A remembering store denies from a memory, and records the answers of another store in it.
type remembering struct {
	inner  store.Store
	memory *seen.Memory
	local  bool // all buckets may be decided locally
}

// remember returns a remembering store, with defaults for DenyFor and DenyKeys.
func remember(inner store.Store, c seen.Config) *remembering {
	if c.DenyFor == 0 {
		c.DenyFor = time.Second
	}
	if c.DenyKeys == 0 {
		c.DenyKeys = 1 << 14
	}
	return &remembering{inner, seen.New(c), c.Local}
}

func (r *remembering) Take(ctx context.Context, dst []bucket.Snapshot, charges []store.Charge, mode store.Mode) ([]bucket.Snapshot, bool, error) {
	began := r.memory.Now()
	if dst, denied := r.memory.Deny(dst, charges, mode, began); denied {
		return dst, false, nil
	}
	asked, first := r.memory.StartTake(began), len(dst)
	dst, allowed, err := r.inner.Take(ctx, dst, charges, mode)
	if err != nil {
		return dst, allowed, err
	}
	answer := r.memory.Answer(asked, mode, allowed, dst[first:])
	for i := range charges {
		r.memory.Record(&answer, &charges[i], &dst[first+i], r.local)
	}
	return dst, allowed, nil
}

func (r *remembering) Refund(ctx context.Context, refunds []store.Refund, id string) error {
	err := r.inner.Refund(ctx, refunds, id)
	for i := range refunds {
		r.memory.Invalidate(refunds[i].Key)
	}
	return err
}

func (r *remembering) Reset(ctx context.Context, keys []string) error {
	err := r.inner.Reset(ctx, keys)
	for _, key := range keys {
		if r.memory.Invalidate(key); err == nil {
			r.memory.Remove(key)
		}
	}
	return err
}

func TestStore(t *testing.T) {
	for name, local := range map[string]bool{"denials": false, "denials and local buckets": true} {
		t.Run(name, func(t *testing.T) {
			var denied atomic.Uint64
			storetest.Run(t, func(t *testing.T, now func() bucket.Instant) store.Store {
				s := remember(storetest.NewModel(now), seen.Config{Now: now, DenyExactly: true, Local: local})
				t.Cleanup(func() { denied.Add(s.memory.Stats().Denied) })
				return s
			})
			if denied.Load() < 100 {
				t.Errorf("only %d takes were denied from memory", denied.Load())
			}
		})
	}
}

// A counted store counts its takes, and calls the test before and after it answers.
type counted struct {
	store.Store
	takes         atomic.Int64
	before, after func()
	fail          func() error // of refunds, if not nil; it may return nil
}

func (c *counted) Take(ctx context.Context, dst []bucket.Snapshot, charges []store.Charge, mode store.Mode) ([]bucket.Snapshot, bool, error) {
	c.takes.Add(1)
	if c.before != nil {
		c.before()
	}
	dst, allowed, err := c.Store.Take(ctx, dst, charges, mode)
	if c.after != nil {
		c.after()
	}
	return dst, allowed, err
}

func (c *counted) Refund(ctx context.Context, refunds []store.Refund, id string) error {
	if c.fail != nil {
		if err := c.fail(); err != nil {
			return err
		}
	}
	return c.Store.Refund(ctx, refunds, id)
}

// A setup is a memory in front of a counted store with a clock.
type setup struct {
	*testing.T
	clock  *storetest.Clock
	inner  *counted
	memory *seen.Memory
	store  *remembering
}

func begin(t *testing.T, config seen.Config) *setup {
	t.Helper()
	clock := storetest.NewClock()
	inner := &counted{Store: storetest.NewModel(clock.Now)}
	config.Now = clock.Now
	s := remember(inner, config)
	return &setup{t, clock, inner, s.memory, s}
}

// take takes through the memory, and asserts the number of store calls so far.
func (s *setup) take(mode store.Mode, asked int64, charges ...store.Charge) ([]bucket.Snapshot, bool) {
	s.Helper()
	snaps, allowed, err := s.store.Take(s.Context(), nil, charges, mode)
	if err != nil || len(snaps) != len(charges) {
		s.Fatalf("take %v: %d snapshots, %v", charges, len(snaps), err)
	}
	if got := s.inner.takes.Load(); got != asked {
		s.Errorf("at %d, after a take of %v: the store was asked %d times, want %d", s.clock.Now(), charges, got, asked)
	}
	return snaps, allowed
}

func compile(t testing.TB, spec bucket.Spec) bucket.Limit {
	t.Helper()
	l, _, err := spec.Compile()
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// slow returns a limit of ten tokens, refilled at one per ten seconds.
func slow(t testing.TB) bucket.Limit {
	t.Helper()
	return compile(t, bucket.Spec{Capacity: 10 * bucket.Token, Rate: bucket.Rate{Tokens: bucket.Token, Per: 10 * time.Second}})
}

func charge(key string, l bucket.Limit, tokens bucket.Tokens) store.Charge {
	return store.Charge{Key: key, Limit: l, Cost: tokens * bucket.Token}
}

func TestTake_AllocatesNothing(t *testing.T) {
	inner, err := memstore.New(memstore.Config{})
	if err != nil {
		t.Fatal(err)
	}
	for _, local := range []bool{false, true} {
		s := remember(inner, seen.Config{DenyFor: time.Hour, Local: local})
		dst := make([]bucket.Snapshot, 0, 1)
		for name, cost := range map[string]bucket.Tokens{"allowed": 0, "denied": 11} {
			charges := []store.Charge{charge(name, slow(t), cost)}
			if got := testing.AllocsPerRun(100, func() { s.Take(t.Context(), dst, charges, store.Mode{}) }); got != 0 {
				t.Errorf("local %v: a take that is %s allocates %v times", local, name, got)
			}
		}
	}
}
