// SPDX-License-Identifier: Apache-2.0

package migrating_test

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

// Two callers with clocks a second apart alternate.
func TestXTimeRate_AlternatingClocks(t *testing.T) {
	c := newClock()
	l := newLimiter(t, tokenBucket(t, 10, "10/1s"), c)
	admitted := 0
	for i := range 1000 {
		if c.now = c.now.Add(time.Second); i%2 == 0 {
			c.now = c.now.Add(-2 * time.Second)
		}
		if l.Allow("k") {
			admitted++
		}
	}
	if bound := 10 + 10; admitted > bound {
		t.Errorf("%d of 1000 admitted by 10/s, capacity 10, within a second; want at most %d", admitted, bound)
	}
}

func TestXTimeRate_NegativeCost(t *testing.T) {
	play(t, tokenBucket(t, 10, "10/1s"),
		step{0, 10, true, 0},
		step{0, -5, false, bucket.Never},
		step{0, 1, false, 100 * time.Millisecond}, // nothing was given back
	)
}

// A third of a token per second, sampled every millisecond, is one token in three seconds, not 0.9999999999999564.
func TestXTimeRate_NoFractionIsLost(t *testing.T) {
	c := newClock()
	l := newLimiter(t, tokenBucket(t, 1, "1/3s"), c)
	l.Allow("k")
	for range 3000 {
		if l.Take("k", 0); l.Allow("k") {
			t.Fatalf("admitted %v early", 3*time.Second)
		}
		c.now = c.now.Add(time.Millisecond)
	}
	if !l.Allow("k") {
		t.Error("denied after 3 s at 1/3s")
	}
}

// In x/time/rate, Cancel does nothing once the work could start. In mete it returns the tokens that have not refilled
// since, and none while a later reservation exists.
func TestXTimeRate_CancelAfterTheStart(t *testing.T) {
	c := newClock()
	l := newLimiter(t, tokenBucket(t, 10, "1/1h"), c)
	reserve := func(cost int) *mete.Reservation {
		t.Helper()
		r, err := l.Reserve("k", cost, 2*time.Hour)
		if err != nil || !r.Allowed {
			t.Fatalf("reserve %d: allowed %v, error %v", cost, r.Allowed, err)
		}
		return r
	}
	cancel := func(r *mete.Reservation, want int64) {
		t.Helper()
		if err := r.Cancel(context.Background()); err != nil {
			t.Fatal(err)
		}
		if got := l.Peek("k", 0).Remaining().Whole(); got != want {
			t.Errorf("%d remaining, want %d", got, want)
		}
	}
	first := reserve(10)
	c.now = c.now.Add(time.Hour)
	l.Take("k", 1)   // the one that has refilled
	cancel(first, 9) // the others come back
	l.Reset("k")
	started, later := reserve(10), reserve(1)
	cancel(started, 0) // the later one starts in an hour
	cancel(later, 0)   // it is the last: its token comes back, and pays the debt
}

func TestXTimeRate_ErrorsCanBeMatched(t *testing.T) {
	l := keyed.Must("1/1h", 10)
	l.Take("k", 10)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := l.Wait(ctx, "k", 1); !errors.Is(err, mete.ErrDeadlineTooSoon) {
		t.Errorf("wait of an hour with a minute to go: error %v, want ErrDeadlineTooSoon", err)
	}
}

// In x/time/rate, WaitN for more than the burst is an error. In mete it waits for the refill, unless MaxReserved is less.
func TestXTimeRate_WaitForMoreThanTheCapacity(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		if err := keyed.Must("1/1s", 10).Wait(context.Background(), "k", 15); err != nil || time.Since(start) != 5*time.Second {
			t.Errorf("wait for 15 of 10: error %v, after %v; want 5s", err, time.Since(start))
		}
	})
	spec, none := tokenBucket(t, 10, "1/1s"), bucket.Tokens(0)
	spec.MaxReserved = &none
	if err := newLimiter(t, spec, newClock()).Wait(context.Background(), "k", 15); !errors.Is(err, mete.ErrNever) {
		t.Errorf("wait for 15 of 10, max reserved 0: error %v, want ErrNever", err)
	}
}

// Waiters proceed in the order of their arrival.
func TestXTimeRate_WaitIsFair(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := keyed.Must("1/1s", 1)
		l.Allow("k")
		done := make(chan int, 5)
		for i := range cap(done) {
			go func() {
				if l.Wait(context.Background(), "k", 1) == nil {
					done <- i
				}
			}()
			synctest.Wait() // i has asked before i+1 does
		}
		for want := range cap(done) {
			if got := <-done; got != want {
				t.Errorf("waiter %d went on as number %d", got, want)
			}
		}
	})
}
