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

// Several limits are charged together or not at all. bucket4j needs one bucket for that, mete does not.
func TestBucket4j_SeveralKeys(t *testing.T) {
	c := newClock()
	l := newChargeLimiter(t, c)
	user, tenant := tokenBucket(t, 5, "5/1m"), tokenBucket(t, 10, "10/1m")
	d := take(t, l, charge(t, user, "user", 5), charge(t, tenant, "tenant", 11))
	if d.Allowed || d.RetryAfter != bucket.Never {
		t.Errorf("11 of 10: allowed %v, retry after %v; want never", d.Allowed, d.RetryAfter)
	}
	if d := take(t, l, charge(t, user, "user", 5), charge(t, tenant, "tenant", 10)); !d.Allowed {
		t.Error("the denied request was charged")
	}
}

// At seven tokens every three seconds no fraction is lost, as in bucket4j.
func TestBucket4j_RemainderIsCarried(t *testing.T) {
	c := newClock()
	l := newLimiter(t, tokenBucket(t, 7, "7/3s"), c)
	l.Take("k", 7)
	admitted := 0
	for range 300_000 {
		c.now = c.now.Add(time.Millisecond)
		if l.Allow("k") {
			admitted++
		}
	}
	if admitted != 700 {
		t.Errorf("%d admitted in 300 s at 7/3s, want 700", admitted)
	}
}

// An interrupted wait returns its tokens.
func TestBucket4j_InterruptedWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := keyed.Must("1/1s", 1)
		l.Allow("k")
		ctx, cancel := context.WithCancel(context.Background())
		waited := make(chan error)
		go func() { waited <- l.Wait(ctx, "k", 1) }()
		synctest.Wait()
		cancel()
		if err := <-waited; !errors.Is(err, context.Canceled) {
			t.Errorf("wait: error %v, want %v", err, context.Canceled)
		}
		if got := l.Peek("k", 1).RetryAfter; got != time.Second {
			t.Errorf("the next one waits %v, want 1s", got)
		}
	})
}

// Refund, like addTokens, stops at the capacity. mete has no forceAddTokens.
func TestBucket4j_RefundStopsAtTheCapacity(t *testing.T) {
	c := newClock()
	l := newLimiter(t, tokenBucket(t, 10, "10/1m"), c)
	l.Take("k", 4)
	l.Refund("k", 100)
	l.Refund("k", -100)
	if got := l.Peek("k", 0).Remaining(); got != 10*bucket.Token {
		t.Errorf("%v remaining, want 10", got)
	}
}

// Spent tokens stay spent when a limit changes: a raised capacity adds its difference, and a lowered bucket is at
// worst empty.
func TestBucket4j_ChangedLimit(t *testing.T) {
	c := newClock()
	l := newChargeLimiter(t, c)
	take(t, l, charge(t, tokenBucket(t, 10, "10/1m"), "k", 8))
	for _, tt := range []struct{ capacity, want bucket.Tokens }{{10, 2}, {100, 92}, {5, 0}} {
		d, err := l.Peek(context.Background(), mete.Request{Charges: []mete.Charge{charge(t, tokenBucket(t, tt.capacity, "10/1m"), "k", 1)}})
		if err != nil {
			t.Fatal(err)
		}
		if got := d.Limits()[0].Remaining(); got != tt.want*bucket.Token {
			t.Errorf("8 of 10 taken, capacity now %d: %v remaining, want %d", tt.capacity, got, tt.want)
		}
	}
}

// consumeIgnoringRateLimits corresponds to Charge, which may run into debt.
func TestBucket4j_ForcedCharge(t *testing.T) {
	l := newChargeLimiter(t, newClock())
	spec := tokenBucket(t, 10, "10/1m")
	d, err := l.Charge(context.Background(), mete.Request{Charges: []mete.Charge{charge(t, spec, "k", 15)}})
	if err != nil || !d.Allowed {
		t.Fatalf("charge 15 of 10: allowed %v, error %v", d.Allowed, err)
	}
	if d := take(t, l, charge(t, spec, "k", 1)); d.Allowed || d.RetryAfter != 36*time.Second {
		t.Errorf("1 more: allowed %v, retry after %v; want 36s, for 5 that are owed and 1", d.Allowed, d.RetryAfter)
	}
}
