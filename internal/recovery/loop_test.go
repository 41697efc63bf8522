// SPDX-License-Identifier: Apache-2.0

package recovery_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/recovery"
	"github.com/metehq/mete/memstore"
	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/store"
)

var errDown = &mete.StoreError{Op: "take", Store: "test", Spent: mete.NotSpent, Err: store.ErrUnavailable}

// A flaky store fails while it is down, answers after slow otherwise, and counts its calls.
type flaky struct {
	mete.Store
	down  atomic.Bool
	slow  time.Duration
	calls atomic.Int64
}

func (f *flaky) Take(ctx context.Context, dst []bucket.Snapshot, charges []store.Charge, mode mete.Mode) ([]bucket.Snapshot, bool, error) {
	f.calls.Add(1)
	if f.down.Load() {
		return dst, false, errDown
	}
	if mode.Within > 0 && mode.Within < f.slow {
		time.Sleep(mode.Within)
		return dst, false, errDown
	}
	time.Sleep(f.slow)
	return f.Store.Take(ctx, dst, charges, mode)
}

func newStore(t *testing.T) *memstore.Store {
	t.Helper()
	s, err := memstore.New(memstore.Config{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// start starts a loop over a store that is down, with one token spent locally.
func start(t *testing.T) (*flaky, *mete.Limiter, *recovery.Loop) {
	t.Helper()
	store := &flaky{Store: newStore(t)}
	m, err := policy.Load([]byte(`{"rules": [{"name": "r", "limit_keys": ["ip:address"], "on_store_error": "local",
		"algorithm_config": {"rate": "1/1h", "burst": 3}}]}`), policy.Options{})
	if err != nil {
		t.Fatal(err)
	}
	limiter, err := mete.New(store, m, mete.Config{Local: newStore(t)})
	if err != nil {
		t.Fatal(err)
	}
	loop := recovery.New()
	loop.Start(limiter)
	store.down.Store(true)
	d, err := limiter.Take(t.Context(), mete.Request{Attributes: mete.Attrs{"ip:address": "192.0.2.1"}})
	if err != nil || !d.Allowed || !d.Degraded {
		t.Fatalf("take during the outage: %+v, %v", d, err)
	}
	return store, limiter, loop
}

// charged asserts the charged amount, minus the refill of 20 seconds.
func charged(t *testing.T, limiter *mete.Limiter, want bucket.Tokens) {
	t.Helper()
	const refill = 20 * bucket.Token / 3600
	if s := limiter.Stats(); s.Charged > want || s.Charged < want-refill || s.Charged > 0 && s.Unsettled != 0 {
		t.Errorf("charged %v with %d keys left, want %v", s.Charged, s.Unsettled, want)
	}
}

// Without a take after the outage, the store is charged within an interval.
func TestLoop_ChargesWithoutATake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, limiter, loop := start(t)
		defer loop.Close()
		time.Sleep(10 * recovery.Interval)
		charged(t, limiter, 0)
		store.down.Store(false)
		time.Sleep(recovery.Interval)
		synctest.Wait()
		charged(t, limiter, bucket.Token)
	})
}

func TestLoop_Wake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, limiter, loop := start(t)
		defer loop.Close()
		store.down.Store(false)
		loop.Wake()
		loop.Wake()
		synctest.Wait() // and no time passes
		charged(t, limiter, bucket.Token)
	})
}

func TestLoop_CallsNoStoreWithoutNeed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, _, loop := start(t)
		defer loop.Close()
		store.down.Store(false)
		time.Sleep(recovery.Interval)
		synctest.Wait()
		before := store.calls.Load()
		time.Sleep(time.Hour)
		synctest.Wait()
		if n := store.calls.Load() - before; n > 0 {
			t.Errorf("%d calls of the store in an hour, although nothing was to be charged", n)
		}
	})
}

// The process with local costs is about to end.
func TestLoop_CloseChargesTheRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, limiter, loop := start(t)
		store.down.Store(false)
		for range 2 {
			if err := loop.Close(); err != nil {
				t.Errorf("close: %v", err)
			}
		}
		charged(t, limiter, bucket.Token)
	})
}

func TestLoop_CloseReportsAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, limiter, loop := start(t)
		began := time.Now()
		if err := loop.Close(); !errors.Is(err, store.ErrUnavailable) {
			t.Errorf("close while the store is down: %v, want one that wraps %v", err, store.ErrUnavailable)
		}
		if took := time.Since(began); took > 3*time.Second {
			t.Errorf("close while the store is down took %v, want 3s at most", took)
		}
		charged(t, limiter, 0)
	})
}

// The first attempts after an outage can fail: the circuit breaker is open, or connections are new.
func TestLoop_CloseTriesAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, limiter, loop := start(t)
		time.AfterFunc(500*time.Millisecond, func() { store.down.Store(false) })
		if err := loop.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
		charged(t, limiter, bucket.Token)
	})
}

// No request waits for the last charge, so a store that needs longer than the deadline of a rule is still charged.
func TestLoop_CloseWaitsForASlowStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, limiter, loop := start(t)
		store.slow = 2 * time.Second
		store.down.Store(false)
		if err := loop.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
		charged(t, limiter, bucket.Token)
	})
}

func TestLoop_CloseBeforeStart(t *testing.T) {
	if err := recovery.New().Close(); err != nil {
		t.Errorf("close: %v", err)
	}
}
