// SPDX-License-Identifier: Apache-2.0

package guard_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/guard"
	"github.com/metehq/mete/store"
	"github.com/metehq/mete/storetest"
)

var errIll = errors.New("connection refused")

// a patient is a store with outages, behind a guard.
type patient struct {
	*testing.T
	inner *counted
	guard *guard.Store
	limit bucket.Limit
}

func admit(t *testing.T, config guard.Config) *patient {
	t.Helper()
	if config.MinFailing == 0 {
		config.MinFailing = -1
	}
	inner := &counted{Store: storetest.NewModel(storetest.NewClock().Now)}
	return &patient{t, inner, guarded(t, inner, config), slow(t)}
}

// take takes zero tokens n times, and returns the last result.
func (p *patient) take(ctx context.Context, n int) (err error) {
	for range n {
		_, _, err = p.guard.Take(ctx, nil, []store.Charge{charge("k", p.limit, 0)}, mete.Mode{})
	}
	return err
}

func (p *patient) fails(err error) { p.inner.fail = func() error { return err } }

// is asserts the state of the breaker, and the number of calls to the store.
func (p *patient) is(when string, state guard.State, asked int64) {
	p.Helper()
	if got := p.guard.State(); got != state {
		p.Errorf("%s: the breaker is %s, want %s", when, got, state)
	}
	if got := p.inner.takes.Load(); got != asked {
		p.Errorf("%s: the store was asked %d times, want %d", when, got, asked)
	}
}

func TestBreaker_LifeCycle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p *patient
		var changes []string
		p = admit(t, guard.Config{Failures: 3, OpenFor: time.Second, Probes: 2, OnChange: func(from, to guard.State) {
			changes = append(changes, fmt.Sprintf("%s to %s", from, to))
			if got := p.guard.Stats().State; got != to {
				t.Errorf("in OnChange(%s, %s): the breaker is %s", from, to, got)
			}
		}})
		ctx := t.Context()
		p.take(ctx, 2)
		p.fails(errIll)
		if err := p.take(ctx, 2); err != errIll {
			t.Errorf("a store that is ill: %v, want %v", err, errIll)
		}
		p.is("after two failures", guard.StateClosed, 4)
		p.take(ctx, 1)
		p.is("after three", guard.StateOpen, 5)

		err := p.take(ctx, 1)
		if se, ok := errors.AsType[*mete.StoreError](err); !ok || se.Op != "take" || se.Spent != mete.NotSpent || !errors.Is(err, store.ErrUnavailable) {
			t.Errorf("while it is open: %v, want a StoreError", err)
		}
		if err := p.guard.Refund(ctx, nil, ""); mete.Spent(err) != mete.NotSpent || !errors.Is(err, store.ErrUnavailable) {
			t.Errorf("a refund while it is open: %v", err)
		}
		if err := p.guard.Reset(ctx, nil); mete.Spent(err) != mete.NotSpent || !errors.Is(err, store.ErrUnavailable) {
			t.Errorf("a reset while it is open: %v", err)
		}
		if err := p.guard.Ping(ctx); !errors.Is(err, store.ErrUnavailable) {
			t.Errorf("a ping while it is open: %v", err)
		}
		time.Sleep(time.Second)
		p.take(ctx, 1)
		p.is("after a second", guard.StateOpen, 5)

		time.Sleep(time.Nanosecond)
		p.take(ctx, 1)
		p.is("after a probe that failed", guard.StateOpen, 6)

		time.Sleep(time.Second + 1)
		p.fails(nil)
		if err := p.take(ctx, 1); err != nil {
			t.Errorf("a probe: %v", err)
		}
		p.is("after one probe", guard.StateHalfOpen, 7)
		p.take(ctx, 1)
		p.is("after two", guard.StateClosed, 8)

		want := []string{"closed to open", "open to half-open", "half-open to open", "open to half-open", "half-open to closed"}
		if !slices.Equal(changes, want) {
			t.Errorf("it went from %q, want %q", changes, want)
		}
		if got := p.guard.Stats(); got.Opened != 2 || got.Rejected != 4 {
			t.Errorf("%+v, want 2 times opened and 4 calls rejected", got)
		}
	})
}

func TestBreaker_AFewProbesAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := admit(t, guard.Config{Failures: 1, OpenFor: time.Second, Probes: 2})
		p.fails(errIll)
		p.take(t.Context(), 1)
		time.Sleep(time.Second + 1)
		answer, done := make(chan struct{}), make(chan error, 10)
		p.inner.fail = func() error { <-answer; return nil }
		for range 10 {
			go func() { done <- p.take(t.Context(), 1) }()
		}
		synctest.Wait()
		p.is("while two try", guard.StateHalfOpen, 3)
		close(answer)
		rejected := 0
		for range 10 {
			if errors.Is(<-done, store.ErrUnavailable) {
				rejected++
			}
		}
		p.is("when both are answered", guard.StateClosed, 3)
		if rejected != 8 {
			t.Errorf("%d of 10 calls were rejected, want 8", rejected)
		}
	})
}

func TestBreaker_None(t *testing.T) {
	p := admit(t, guard.Config{NoBreaker: true})
	p.fails(errIll)
	if err := p.take(t.Context(), 100); err != errIll {
		t.Errorf("Take() = %v, want %v", err, errIll)
	}
	if err := p.guard.Refund(t.Context(), nil, ""); err != errIll {
		t.Errorf("Refund() = %v, want %v", err, errIll)
	}
	p.is("after 100 failures", guard.StateClosed, 100)
}

// TestBreaker_DenialsGoOn proves that denials continue while the breaker is open.
func TestBreaker_DenialsGoOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := admit(t, guard.Config{Failures: 1})
		l, err := mete.New(p.guard, nil, mete.Config{DenyFor: time.Second})
		if err != nil {
			t.Fatal(err)
		}
		deny := func() mete.Decision {
			d, err := l.Take(t.Context(), mete.Request{Charges: []mete.Charge{{Key: "denied", Limit: p.limit, Cost: 11}}})
			if err != nil {
				t.Fatal(err)
			}
			return d
		}
		deny()
		p.fails(errIll)
		p.take(t.Context(), 1)
		if d := deny(); d.Allowed || d.Degraded {
			t.Errorf("while the breaker is open: %+v, want a denial", d)
		}
		p.is("after a denial", guard.StateOpen, 2)
	})
}
