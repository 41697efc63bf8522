// SPDX-License-Identifier: Apache-2.0

package mete_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/memstore"
)

// waitRig is a limiter on the bubble's clock with three tokens, refilled at one per second.
func waitRig(t *testing.T) *mete.Limiter {
	t.Helper()
	store, err := memstore.New(memstore.Config{Now: func() bucket.Instant { return bucket.At(time.Now()) }})
	if err != nil {
		t.Fatal(err)
	}
	m := load(t, `{"name": "user", "limit_keys": ["header:x-user"], "algorithm_config": {"rps": 1, "burst": 3}}`)
	l, err := mete.New(store, m, mete.Config{})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

var waiter = mete.Request{Attributes: mete.Attrs{"header:x-user": "alice"}}

func TestWait_SleepsNoLongerThanNeeded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, begin := waitRig(t), time.Now()
		for i := range 10 {
			if _, err := l.Wait(t.Context(), waiter); err != nil {
				t.Fatal(err)
			}
			if got, want := time.Since(begin), max(time.Duration(i-2), 0)*time.Second; got != want {
				t.Errorf("wait %d ended after %v, want %v", i, got, want)
			}
		}
	})
}

func TestWait_InOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, begin := waitRig(t), time.Now()
		var wg sync.WaitGroup
		for i := range 100 {
			wg.Go(func() {
				if _, err := l.Wait(t.Context(), waiter); err != nil {
					t.Error(err)
				}
				if got, want := time.Since(begin), max(time.Duration(i-2), 0)*time.Second; got != want {
					t.Errorf("waiter %d left after %v, want %v", i, got, want)
				}
			})
			synctest.Wait() // the next asks after this one
		}
		wg.Wait()
	})
}

func TestWait_CancelledGivesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := waitRig(t)
		for range 3 {
			l.Wait(t.Context(), waiter)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() {
			_, err := l.Wait(ctx, waiter)
			done <- err
		}()
		synctest.Wait()
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("error %v, want context.Canceled", err)
		}
		begin := time.Now()
		if _, err := l.Wait(t.Context(), waiter); err != nil || time.Since(begin) != time.Second {
			t.Errorf("the next waited %v (error %v), want 1s: the place was not given back", time.Since(begin), err)
		}
	})
}

// G10: a shadow rule refunds the same tokens as an enforced rule.
func TestWait_CancelledGivesBackToShadow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := waitRig(t)
		l.SetPolicy(load(t, `{"rules": [
			{"name": "user", "limit_keys": ["header:x-user"], "algorithm_config": {"rate": "1/1h", "burst": 1}},
			{"name": "trial", "limit_keys": [], "mode": "shadow", "algorithm_config": {"rate": "1/100h", "burst": 9}}]}`))
		l.Wait(t.Context(), waiter)
		for range 5 {
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(time.Second, cancel)
			l.Wait(ctx, waiter)
		}
		d, err := l.Peek(t.Context(), mete.Request{})
		if err != nil || len(d.Shadow) != 1 || d.Shadow[0].Remaining().Whole() != 8 {
			t.Errorf("shadow %+v (error %v), want one with 8 tokens", d.Shadow, err)
		}
	})
}

func TestWait_DoesNotBeginInVain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, begin := waitRig(t), time.Now()
		never := mete.Request{Attributes: waiter.Attributes, Cost: mete.TokensOf(bucket.MaxTokens)}
		if _, err := l.Wait(t.Context(), never); !errors.Is(err, mete.ErrNever) {
			t.Errorf("a cost of %v: error %v, want ErrNever", never.Cost, err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second-time.Microsecond)
		defer cancel()
		if _, err := l.Wait(ctx, never); !errors.Is(err, mete.ErrNever) {
			t.Errorf("the same with a deadline: error %v, want ErrNever", err)
		}
		for range 3 {
			l.Wait(t.Context(), waiter)
		}
		if _, err := l.Wait(ctx, waiter); !errors.Is(err, mete.ErrDeadlineTooSoon) {
			t.Errorf("a deadline 1 µs too soon: error %v, want ErrDeadlineTooSoon", err)
		}
		short := waiter
		short.MaxWait = 10 * time.Millisecond
		if _, err := l.Wait(t.Context(), short); !errors.Is(err, mete.ErrDeadlineTooSoon) {
			t.Errorf("a longest wait of 10ms: error %v, want ErrDeadlineTooSoon", err)
		}
		if got := time.Since(begin); got != 0 {
			t.Errorf("refusals slept for %v", got)
		}
		// None of these has taken a place.
		if d, err := l.Wait(t.Context(), waiter); err != nil || d.Wait != time.Second {
			t.Errorf("wait %v (error %v), want 1s", d.Wait, err)
		}
	})
}

// A caller that checks for errors of package context must not confuse a cause, which may be any error, with a
// failure of the limiter.
func TestWait_ContextHasACause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, cause := waitRig(t), errors.New("the other worker failed")
		for range 3 {
			l.Take(t.Context(), waiter)
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		var wg sync.WaitGroup
		for range 2 { // the first sleeps, the other waits for its turn
			wg.Go(func() {
				if _, err := l.Wait(ctx, waiter); !errors.Is(err, context.Canceled) || !errors.Is(err, cause) {
					t.Errorf("error %v, want one that wraps %v and %v", err, context.Canceled, cause)
				}
			})
		}
		synctest.Wait()
		cancel(cause)
		wg.Wait()
		for name, do := range map[string]func(context.Context, mete.Request) (mete.Decision, error){"Wait": l.Wait, "Take": l.Take} {
			if _, err := do(ctx, waiter); !errors.Is(err, context.Canceled) || !errors.Is(err, cause) {
				t.Errorf("%s: error %v, want one that wraps %v and %v", name, err, context.Canceled, cause)
			}
		}
		expired, cancelExpired := context.WithTimeout(t.Context(), 0)
		defer cancelExpired()
		if _, err := l.Wait(expired, waiter); err != context.DeadlineExceeded {
			t.Errorf("error %v, want %v and nothing else", err, context.DeadlineExceeded)
		}
	})
}

// The request's own limits have no rule, and no error quotes an empty name.
func TestWait_ErrorsWithoutARule(t *testing.T) {
	r := newBare(t, mete.Config{})
	l := compile(t, bucket.Spec{Capacity: bucket.Token, Rate: bucket.PerSecond(bucket.Token), MaxReserved: new(bucket.Tokens)})
	wait := func(cost bucket.Tokens) error {
		_, err := r.Wait(t.Context(), mete.Request{Charges: []mete.Charge{{Key: "k", Limit: l, Cost: mete.TokensOf(cost)}}, MaxWait: time.Millisecond})
		return err
	}
	for _, tc := range []struct {
		cost bucket.Tokens
		want error
	}{{2 * bucket.Token, mete.ErrNever}, {bucket.Token, nil}, {bucket.Token, mete.ErrDeadlineTooSoon}} {
		if err := wait(tc.cost); !errors.Is(err, tc.want) || err != nil && strings.Contains(err.Error(), "rule") {
			t.Errorf("a cost of %v: error %v, want %v", tc.cost, err, tc.want)
		}
	}
}

// A reservation is a take with a wait: it returns the wait and does not sleep.
func TestTake_Reserves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, begin := waitRig(t), time.Now()
		req := mete.Request{Attributes: waiter.Attributes, Cost: 2, MaxWait: 3 * time.Second}
		for i, want := range []time.Duration{0, time.Second, 3 * time.Second} {
			if d, err := l.Take(t.Context(), req); err != nil || !d.Allowed || d.Wait != want {
				t.Errorf("reservation %d: %+v, error %v; want a wait of %v", i, d, err, want)
			}
		}
		if d, _ := l.Take(t.Context(), req); d.Allowed || d.RetryAfter != 2*time.Second {
			t.Errorf("a reservation of 5s with a longest wait of 3s: %+v, want denied for 2s", d)
		}
		if time.Since(begin) != 0 {
			t.Error("Take slept")
		}
	})
}
