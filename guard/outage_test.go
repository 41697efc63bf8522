// SPDX-License-Identifier: Apache-2.0

package guard_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/guard"
	"github.com/metehq/mete/store"
)

func TestBreaker_HalfOfMany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := admit(t, guard.Config{Failures: 1000})
		take := func(err error, n int) {
			p.fails(err)
			p.take(t.Context(), n)
		}
		take(nil, 100)
		take(errIll, 1)
		take(nil, 20)
		take(errIll, 18)
		p.is("19 of 39", guard.StateClosed, 139)
		take(errIll, 1)
		p.is("20 of 40", guard.StateOpen, 140)
	})
}

func TestBreaker_FewCallsAreNoSign(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := admit(t, guard.Config{Failures: 1000})
		p.fails(errIll)
		for range 100 { // never enough within the window
			p.take(t.Context(), 1)
			time.Sleep(time.Second)
		}
		p.is("a call in a second", guard.StateClosed, 100)
	})
}

// TestBreaker_InARow proves that an answer ends a series of failures.
func TestBreaker_InARow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := admit(t, guard.Config{Failures: 3})
		take := func(err error, n int) {
			p.fails(err)
			p.take(t.Context(), n)
		}
		for range 3 {
			take(errIll, 2)
			take(nil, 3)
			time.Sleep(guard.Window / 2)
			take(nil, 1)
			time.Sleep(guard.Window)
			take(nil, 3)
		}
		p.is("never three in a row", guard.StateClosed, 27)
		take(errIll, 3)
		p.is("three in a row", guard.StateOpen, 30)
	})
}

// TestBreaker_WhatCounts proves that only missing answers count.
func TestBreaker_WhatCounts(t *testing.T) {
	canceled := func(t *testing.T) context.Context {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		return ctx
	}
	within := func(d time.Duration) func(*testing.T) context.Context {
		return func(t *testing.T) context.Context {
			ctx, cancel := context.WithTimeout(t.Context(), d)
			t.Cleanup(cancel)
			return ctx
		}
	}
	plain := func(t *testing.T) context.Context { return t.Context() }
	failed := func(err error) error { return &mete.StoreError{Op: "take", Store: "far", Err: err} }
	hang := errors.New("hangs until the caller gives up")
	for name, tt := range map[string]struct {
		ctx    func(*testing.T) context.Context
		err    error
		counts bool
	}{
		"a refused connection":          {plain, errIll, true},
		"Mode.Within":                   {plain, failed(context.DeadlineExceeded), true},
		"a store that is being closed":  {plain, failed(context.Canceled), true},
		"a caller who has gone":         {canceled, failed(context.Canceled), false},
		"an error beside that":          {canceled, errIll, true},
		"a caller's deadline":           {within(guard.MinDeadline), hang, true},
		"an impatient caller":           {within(guard.MinDeadline - 1), hang, false},
		"an impatient caller, an error": {within(guard.MinDeadline - 1), errIll, true},
		"an invalid request":            {plain, failed(mete.ErrRequest), false},
		"an invalid cost":               {plain, failed(mete.ErrCost), false},
		"a store that says so itself":   {plain, failed(store.ErrUnavailable), true},
		"a queue that is full":          {plain, failed(store.ErrOverloaded), false},
		"a caller's transaction":        {plain, failed(store.ErrTransaction), false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := admit(t, guard.Config{Failures: 3})
				for range 3 {
					ctx := tt.ctx(t)
					p.inner.fail = func() error {
						if tt.err != hang {
							return tt.err
						}
						<-ctx.Done()
						return failed(ctx.Err())
					}
					p.take(ctx, 1)
				}
				want := guard.StateClosed
				if tt.counts {
					want = guard.StateOpen
				}
				p.is("after three", want, 3)
			})
		})
	}
}

// TestBreaker_BriefDeadlines proves that a rule with a short timeout does not open the breaker while other calls
// are answered. It does not keep the breaker closed otherwise.
func TestBreaker_BriefDeadlines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := admit(t, guard.Config{})
		late := &mete.StoreError{Op: "take", Store: "far", Err: context.DeadlineExceeded}
		brief := func(n int) {
			p.fails(late)
			for range n {
				_, _, _ = p.guard.Take(t.Context(), nil, []store.Charge{charge("k", p.limit, 0)}, mete.Mode{Within: time.Millisecond})
				time.Sleep(time.Millisecond)
			}
		}
		for range 100 {
			brief(40)
			p.fails(nil)
			p.take(t.Context(), 1)
		}
		p.is("others are answered", guard.StateClosed, 4100)
		brief(70)
		p.is("nobody is answered", guard.StateOpen, 4160)
	})
}

// TestBreaker_LateFailure proves that a call from before the opening is not a probe.
func TestBreaker_LateFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := admit(t, guard.Config{Failures: 1, OpenFor: time.Second, Probes: 2})
		answer, done := make(chan error), make(chan error)
		p.inner.fail = func() error { return <-answer }
		go func() { done <- p.take(t.Context(), 1) }()
		synctest.Wait()
		p.fails(errIll)
		p.take(t.Context(), 1)
		time.Sleep(time.Second + 1)
		p.fails(nil)
		p.take(t.Context(), 1)
		p.is("after one probe", guard.StateHalfOpen, 3)
		answer <- errIll
		<-done
		p.is("after an old failure", guard.StateHalfOpen, 3)
		p.take(t.Context(), 1)
		p.is("after two probes", guard.StateClosed, 4)
	})
}

// TestBreaker_Panic proves that a panic ends a call, too.
func TestBreaker_Panic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := admit(t, guard.Config{Failures: 2, OpenFor: time.Second, Probes: 1})
		p.inner.fail = func() error { panic(errIll) }
		attempt := func(call func() error) {
			defer func() {
				if got := recover(); got != errIll {
					t.Errorf("recovered %v, want what the store panicked with", got)
				}
			}()
			call()
		}
		attempt(func() error { return p.take(t.Context(), 1) })
		attempt(func() error { return p.guard.Refund(t.Context(), nil, "") })
		p.is("after two panics", guard.StateOpen, 1)
		time.Sleep(time.Second + 1)
		attempt(func() error { return p.take(t.Context(), 1) })
		time.Sleep(time.Second + 1)
		p.fails(nil)
		p.take(t.Context(), 1)
		p.is("after a probe", guard.StateClosed, 3)
	})
}

// TestBreaker_OneStall proves that a single stalled call, which fails all of its takes, does not open the
// breaker.
func TestBreaker_OneStall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := admit(t, guard.Config{MinFailing: guard.DefaultMinFailing})
		p.take(t.Context(), 3)
		p.fails(errIll)
		p.take(t.Context(), 50)
		if got := p.guard.State(); got != guard.StateClosed {
			t.Errorf("after 50 failures at once the breaker is %v", got)
		}
		p.inner.fail = nil
		p.take(t.Context(), 200)
		time.Sleep(guard.DefaultMinFailing)
		p.fails(errIll)
		p.take(t.Context(), 9)
		if got := p.guard.State(); got != guard.StateClosed {
			t.Errorf("after a second stall the breaker is %v", got)
		}
		time.Sleep(guard.DefaultMinFailing)
		p.take(t.Context(), 1)
		if got := p.guard.State(); got != guard.StateOpen {
			t.Errorf("after ten failures in a row over %v the breaker is %v", guard.DefaultMinFailing, got)
		}
	})
}
