// SPDX-License-Identifier: Apache-2.0

package keyed_test

import (
	"context"
	"errors"
	"fmt"
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
	r, err := l.Reserve("a", 5, time.Second) // not even if the bucket is full
	if err != nil || r.Allowed || r.RetryAfter != bucket.Never {
		t.Errorf("5 of 3 within 1s: allowed %v, retry after %v, error %v; want a denial for ever", r.Allowed, r.RetryAfter, err)
	}
	for i, tt := range []struct {
		cost   int
		wait   time.Duration
		after  time.Duration // when it is settled
		actual int
		left   int64
	}{
		{5, 2 * time.Second, 0, 1, 0},               // not started: a part of it comes back with its turn, not before
		{5, 2 * time.Second, 0, 0, 3},               // not started, and the last one: all of it
		{5, 2 * time.Second, 2 * time.Second, 4, 1}, // started: the rest
		{5, 2 * time.Second, 2 * time.Second, 0, 3}, // never above the capacity
		{2, 0, 0, 1, 2},
		{2, 0, 0, 0, 3},
		{2, 0, time.Second, 0, 3}, // of 2, one has refilled
	} {
		key := fmt.Sprint("key", i)
		r, err := l.Reserve(key, tt.cost, 2*time.Second)
		if err != nil || !r.Allowed || r.Wait != tt.wait {
			t.Fatalf("%d of 3: allowed %v, wait %v, error %v; want %v", tt.cost, r.Allowed, r.Wait, err, tt.wait)
		}
		c.now = c.now.Add(tt.after)
		if tt.actual == 0 {
			err = r.Cancel(t.Context())
		} else {
			err = r.Settle(t.Context(), mete.TokensOf(bucket.Tokens(tt.actual)*bucket.Token))
		}
		if left := l.Peek(key, 0).Remaining().Whole(); err != nil || left != tt.left {
			t.Errorf("%d reserved, %d used, settled after %v: error %v, %d left, want %d", tt.cost, tt.actual, tt.after, err, left, tt.left)
		}
	}
}

// Refilled tokens do not return with a canceled reservation: a login that is canceled later does not exceed the
// rate. A refund returns them.
func TestReserve_CancelKeepsTheBound(t *testing.T) {
	c := &clock{now: bucket.At(time.Unix(1_700_000_000, 0))}
	l := newLimiter(t, three, c)
	r, err := l.Reserve("a", 2, 0)
	if err != nil || !r.Allowed {
		t.Fatalf("2 of 3: allowed %v, error %v", r.Allowed, err)
	}
	c.now = c.now.Add(2 * time.Second)
	l.Take("a", 3)
	if err := r.Cancel(t.Context()); err != nil || l.Peek("a", 0).Remaining() != 0 {
		t.Errorf("canceled after its tokens refilled and were taken again: error %v, %v left", err, l.Peek("a", 0).Remaining())
	}
	l.Refund("a", 2)
	if left := l.Peek("a", 0).Remaining(); left != 2*bucket.Token {
		t.Errorf("refunded: %v left, want 2", left)
	}
}
