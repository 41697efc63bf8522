// SPDX-License-Identifier: Apache-2.0

package guard_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/guard"
	"github.com/metehq/mete/store"
	"github.com/metehq/mete/storetest"
)

func TestStore(t *testing.T) {
	storetest.Run(t, func(t *testing.T, now func() bucket.Instant) mete.Store {
		return guarded(t, storetest.NewModel(now), guard.Config{})
	})
}

// guarded returns a guard of the store.
func guarded(t testing.TB, inner mete.Store, config guard.Config) *guard.Store {
	t.Helper()
	s, err := guard.New(inner, config)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// a counted store counts its takes, and fails as the test requests.
type counted struct {
	mete.Store
	takes atomic.Int64
	fail  func() error // if it is not nil and returns an error, the take fails
}

func (c *counted) Take(ctx context.Context, dst []bucket.Snapshot, charges []store.Charge, mode mete.Mode) ([]bucket.Snapshot, bool, error) {
	c.takes.Add(1)
	if c.fail != nil {
		if err := c.fail(); err != nil {
			return dst, false, err
		}
	}
	return c.Store.Take(ctx, dst, charges, mode)
}

func (c *counted) Refund(ctx context.Context, refunds []mete.Refund, id string) error {
	if c.fail != nil {
		if err := c.fail(); err != nil {
			return err
		}
	}
	return c.Store.Refund(ctx, refunds, id)
}

func compile(t testing.TB, spec bucket.Spec) bucket.Limit {
	t.Helper()
	l, _, err := spec.Compile()
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// slow is a limit of ten tokens that refills one per ten seconds.
func slow(t testing.TB) bucket.Limit {
	t.Helper()
	return compile(t, bucket.Spec{Capacity: 10 * bucket.Token, Rate: bucket.Rate{Tokens: bucket.Token, Per: 10 * time.Second}})
}

func charge(key string, l bucket.Limit, tokens bucket.Tokens) store.Charge {
	return store.Charge{Key: key, Limit: l, Cost: tokens * bucket.Token}
}

func TestNew_Wrong(t *testing.T) {
	naive := storetest.NewModel(storetest.NewClock().Now)
	for _, tt := range []struct {
		store  mete.Store
		config guard.Config
		wrong  int
	}{
		{nil, guard.Config{}, 1},
		{naive, guard.Config{Failures: -1}, 1},
		{naive, guard.Config{Probes: 1 << 30}, 1},
		{naive, guard.Config{Failures: -1, Probes: -1, OpenFor: -1}, 3},
	} {
		s, err := guard.New(tt.store, tt.config)
		count := 0
		var joined interface{ Unwrap() []error }
		if errors.As(err, &joined) {
			count = len(joined.Unwrap())
		}
		if s != nil || count != tt.wrong {
			t.Errorf("New(%v, %+v) = %v, %v; want %d errors", tt.store, tt.config, s, err, tt.wrong)
		}
	}
}

// A pinger is a store with Ping and Close.
type pinger struct {
	mete.Store
	ping, close error
}

func (d pinger) Ping(context.Context) error { return d.ping }
func (d pinger) Close() error               { return d.close }

func TestPingAndClose(t *testing.T) {
	naive := storetest.NewModel(storetest.NewClock().Now)
	ping, shut := errors.New("ping"), errors.New("close")
	s := guarded(t, pinger{naive, ping, shut}, guard.Config{})
	if err := s.Ping(t.Context()); err != ping {
		t.Errorf("Ping() = %v, want what the store says", err)
	}
	if err := s.Close(); err != shut {
		t.Errorf("Close() = %v, want what the store says", err)
	}
	s = guarded(t, naive, guard.Config{})
	if err := errors.Join(s.Ping(t.Context()), s.Close()); err != nil {
		t.Errorf("over a store that is neither Pinger nor Closer: %v", err)
	}
}
