// SPDX-License-Identifier: Apache-2.0

package mete_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/memstore"
	"github.com/metehq/mete/store"
)

// slowed is a limiter on the bubble's clock with 10 tokens, refilled at one per ten seconds. It delays by 2s
// while at least half of them are used.
func slowed(t *testing.T, config mete.Config) *mete.Limiter {
	t.Helper()
	store, err := memstore.New(memstore.Config{Now: func() bucket.Instant { return bucket.At(time.Now()) }})
	if err != nil {
		t.Fatal(err)
	}
	l, err := mete.New(store, load(t, `{"name": "r", "limit_keys": [], "algorithm_config": {"rate": "1/10s", "burst": 10,
		"staged_actions": [{"threshold": 50, "action": "throttle", "delay": "2s"}]}}`), config)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func take(t *testing.T, l *mete.Limiter, tokens bucket.Tokens) mete.Decision {
	t.Helper()
	d, err := l.Take(t.Context(), mete.Request{Cost: mete.TokensOf(tokens * bucket.Token)})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// remaining returns the content of the bucket.
func remaining(t *testing.T, l *mete.Limiter) bucket.Tokens {
	t.Helper()
	d, err := l.Peek(t.Context(), mete.Request{})
	if err != nil {
		t.Fatal(err)
	}
	return d.Limits()[0].Remaining()
}

// Peek returns the delay of Take. Finished work is not delayed.
func TestStages_PeekAndCharge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := slowed(t, mete.Config{})
		for used := range bucket.Tokens(10) {
			p, err := l.Peek(t.Context(), mete.Request{})
			if err != nil {
				t.Fatal(err)
			}
			if d := take(t, l, 1); p.Wait != d.Wait || d.Wait != map[bool]time.Duration{true: 2 * time.Second}[used >= 4] {
				t.Errorf("%d used: peek says %v, take %v", used, p.Wait, d.Wait)
			}
		}
		l = slowed(t, mete.Config{})
		take(t, l, 8)
		if d, err := l.Charge(t.Context(), mete.Request{}); err != nil || d.Wait != 0 {
			t.Errorf("charge: wait %v (%v), want 0: nothing is owed", d.Wait, err)
		}
		if d, err := l.Charge(t.Context(), mete.Request{Cost: 2}); err != nil || d.Wait != 10*time.Second {
			t.Errorf("charge: wait %v (%v), want the 10s that the debt lasts", d.Wait, err)
		}
	})
}

// A Wait with a stage delay beyond its deadline ends at once and spends nothing. Its RetryAfter is exact.
func TestWait_StageTooLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := slowed(t, mete.Config{})
		take(t, l, 4)
		wait := func(own, deadline time.Duration) mete.Decision {
			t.Helper()
			ctx, cancel := context.WithTimeout(t.Context(), deadline)
			defer cancel()
			begin := time.Now()
			d, err := l.Wait(ctx, mete.Request{MaxWait: own})
			if !errors.Is(err, mete.ErrDeadlineTooSoon) || d.Allowed || d.Rule != "r" || d.Reason != "token_bucket_exceeded" || time.Since(begin) != 0 {
				t.Errorf("got %+v, error %v after %v, want %v", d, err, time.Since(begin), mete.ErrDeadlineTooSoon)
			}
			return d
		}
		wait(time.Second, time.Hour)
		d := wait(0, time.Second)
		if left := remaining(t, l); left != 6*bucket.Token {
			t.Errorf("%v tokens are left, want 6: they were given back", left)
		}
		time.Sleep(d.RetryAfter)
		begin := time.Now()
		if _, err := l.Wait(t.Context(), mete.Request{MaxWait: time.Second}); err != nil || time.Since(begin) != 0 {
			t.Errorf("after its RetryAfter: %v, %v", err, time.Since(begin))
		}
	})
}

// Each request has its own delay. A request that gives up after a second gets back its token minus the refill
// of that second.
func TestWait_StageDelaysEachAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, begin := slowed(t, mete.Config{}), time.Now()
		take(t, l, 5)
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		if _, err := l.Wait(ctx, mete.Request{}); !errors.Is(err, context.Canceled) || remaining(t, l) != 5*bucket.Token {
			t.Errorf("got %v and %v left", err, remaining(t, l))
		}
		var wg sync.WaitGroup
		for _, want := range []time.Duration{3, 3, 3, 3, 3, 11, 21, 31} { // who waits longer for a token is delayed already
			wg.Go(func() {
				if _, err := l.Wait(t.Context(), mete.Request{}); err != nil {
					t.Error(err)
				}
				if took := time.Since(begin); took != want*time.Second {
					t.Errorf("waited until %v, want %v", took, want*time.Second)
				}
			})
			synctest.Wait()
		}
		wg.Wait()
	})
}

// In an outage, a local share has a share of the stages.
func TestStages_OfALocalShare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clock := func() bucket.Instant { return bucket.At(time.Now()) }
		local, err := memstore.New(memstore.Config{Now: clock})
		if err != nil {
			t.Fatal(err)
		}
		m := load(t, `{"name": "r", "limit_keys": [], "on_store_error": "local", "algorithm_config": {"rate": "1/10s", "burst": 40,
			"staged_actions": [{"threshold": 50, "action": "throttle", "delay": "2s"}]}}`)
		l, err := mete.New(noStore{}, m, mete.Config{Local: local, Nodes: func() int { return 4 }, Now: clock})
		if err != nil {
			t.Fatal(err)
		}
		for used := range 10 {
			d := take(t, l, 1)
			if !d.Degraded || !d.Allowed || (d.Wait > 0) != (used >= 4) || (d.Limits()[0].Stage() != nil) != (used >= 4) {
				t.Errorf("%d of 10 used: %+v", used, d)
			}
		}
	})
}

// noStore is a store that never answers.
type noStore struct{ mete.Store }

func (noStore) Take(context.Context, []bucket.Snapshot, []store.Charge, mete.Mode) ([]bucket.Snapshot, bool, error) {
	return nil, false, errors.New("no store")
}
