// SPDX-License-Identifier: Apache-2.0

package mete_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/memstore"
	"github.com/metehq/mete/store"
)

// A turnstile is a store with a second take that blocks and a third take that fails.
type turnstile struct {
	mete.Store
	takes         int
	waiting, open chan struct{}
}

func (s *turnstile) Take(ctx context.Context, dst []bucket.Snapshot, charges []store.Charge, mode mete.Mode) ([]bucket.Snapshot, bool, error) {
	switch s.takes++; s.takes {
	case 2:
		close(s.waiting)
		<-s.open
	case 3:
		return dst, false, errors.New("down")
	}
	return s.Store.Take(ctx, dst, charges, mode)
}

// A lateStore is a local store with a first take that opens the turnstile for its waiter.
type lateStore struct {
	mete.Store
	open chan struct{}
	done bool
}

func (s *lateStore) Take(ctx context.Context, dst []bucket.Snapshot, charges []store.Charge, mode mete.Mode) ([]bucket.Snapshot, bool, error) {
	if !mode.DryRun && mode.MaxWait != bucket.Forced && !s.done {
		s.done = true
		close(s.open)
		time.Sleep(time.Millisecond)
	}
	return s.Store.Take(ctx, dst, charges, mode)
}

// A waiter without a store answer inspects the queue with all of its claims, even if only some were decided locally.
func TestWait_BehindAnAnswerInAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		newStore := func() mete.Store {
			s, err := memstore.New(memstore.Config{})
			if err != nil {
				t.Fatal(err)
			}
			return s
		}
		store := &turnstile{Store: newStore(), waiting: make(chan struct{}), open: make(chan struct{})}
		l, err := mete.New(store, load(t, `{"rules": [
			{"name": "a", "group": "a", "limit_keys": [], "on_store_error": "local", "algorithm_config": {"rate": "1/20s", "burst": 1, "max_reserved": 1}},
			{"name": "b", "group": "b", "limit_keys": [], "on_store_error": "open", "algorithm_config": {"rate": "1/2000s", "burst": 1}}]}`),
			mete.Config{Local: &lateStore{Store: newStore(), open: store.open}})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := l.Take(t.Context(), mete.Request{}); err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		first := make(chan error)
		go func() {
			_, err := l.Wait(ctx, mete.Request{})
			first <- err
		}()
		<-store.waiting
		patient, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if d, err := l.Wait(patient, mete.Request{}); !errors.Is(err, mete.ErrDeadlineTooSoon) {
			t.Errorf("the second: %+v, %v; want %v", d, err, mete.ErrDeadlineTooSoon)
		}
		stop()
		if err := <-first; !errors.Is(err, context.Canceled) {
			t.Errorf("the first: %v, want %v", err, context.Canceled)
		}
	})
}
