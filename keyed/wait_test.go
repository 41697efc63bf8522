// SPDX-License-Identifier: Apache-2.0

package keyed_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/keyed"
)

func TestWait_SleepsNoLongerThanNeeded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := keyed.Must("1/1s", 2)
		start := time.Now()
		for i, want := range []time.Duration{0, 0, time.Second, 2 * time.Second} {
			if err := l.Wait(t.Context(), "a", 1); err != nil {
				t.Fatal(err)
			}
			if got := time.Since(start); got != want {
				t.Errorf("wait %d ended after %v, want %v", i, got, want)
			}
		}
		if err := l.Wait(t.Context(), "b", 2); err != nil || time.Since(start) != 2*time.Second {
			t.Errorf("wait for another key: error %v, after %v; want at once", err, time.Since(start))
		}
	})
}

func TestWait_CancelledGivesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := keyed.Must("1/1s", 1)
		l.Allow("a")
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- l.Wait(ctx, "a", 1) }()
		synctest.Wait()
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("error %v, want %v", err, context.Canceled)
		}
		if got := l.Peek("a", 1).RetryAfter; got != time.Second {
			t.Errorf("the next one has to wait %v, want 1s", got)
		}
	})
}

func TestWait_DoesNotBeginInVain(t *testing.T) {
	none, spec := bucket.Tokens(0), three
	spec.MaxReserved = &none
	l := newLimiter(t, spec, &clock{})
	for l.Allow("a") {
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second/2) // the next token is later
	defer cancel()
	for _, tt := range []struct {
		key  string
		cost int
		want error
	}{
		{"a", 1, mete.ErrDeadlineTooSoon},
		{"a", 4, mete.ErrNever},
		{"a", -1, mete.ErrCost},
		{"b", -1, mete.ErrCost},
		{"", 1, mete.ErrRequest},
	} {
		if err := l.Wait(ctx, tt.key, tt.cost); !errors.Is(err, tt.want) {
			t.Errorf("Wait(%q, %d): error %v, want %v", tt.key, tt.cost, err, tt.want)
		}
	}
}

func TestReserve(t *testing.T) {
	c := &clock{now: bucket.At(time.Unix(1_700_000_000, 0))}
	l := newLimiter(t, three, c)
	left := func() int64 { return l.Peek("a", 0).Remaining().Whole() }

	r, err := l.Reserve("a", 5, time.Second) // not even if the bucket is full
	if err != nil || r.Allowed || r.RetryAfter != bucket.Never {
		t.Errorf("5 of 3 within 1s: allowed %v, retry after %v, error %v; want a denial for ever", r.Allowed, r.RetryAfter, err)
	}
	if r, err = l.Reserve("a", 5, 2*time.Second); err != nil || !r.Allowed || r.Wait != 2*time.Second {
		t.Fatalf("5 of 3 within 2s: allowed %v, wait %v, error %v; want 2s", r.Allowed, r.Wait, err)
	}
	if err := r.Settle(t.Context(), 1*bucket.Token); err != nil || left() != 2 {
		t.Errorf("settled with 1: error %v, %d left, want 2", err, left())
	}
	if r, err = l.Reserve("a", 2, 0); err != nil || !r.Allowed || r.Wait != 0 {
		t.Fatalf("2 of 2: allowed %v, wait %v, error %v", r.Allowed, r.Wait, err)
	}
	if err := r.Cancel(t.Context()); err != nil || left() != 2 {
		t.Errorf("canceled: error %v, %d left, want 2", err, left())
	}
}
