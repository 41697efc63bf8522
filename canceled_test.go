// SPDX-License-Identifier: Apache-2.0

package mete_test

import (
	"testing"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/memstore"
	"github.com/metehq/mete/storetest"
)

// hold reserves until the limiter denies.
func hold(t *testing.T, l *mete.Limiter) []*mete.Reservation {
	t.Helper()
	var held []*mete.Reservation
	for {
		r, err := l.Reserve(t.Context(), mete.Request{})
		if err != nil {
			t.Fatal(err)
		}
		if !r.Allowed {
			return held
		}
		held = append(held, r)
	}
}

func cancelAll(t *testing.T, held []*mete.Reservation) {
	t.Helper()
	for _, r := range held {
		if err := r.Cancel(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

func canceling(t *testing.T, rules string) (*mete.Limiter, *storetest.Clock) {
	t.Helper()
	clock := storetest.NewClock()
	store, err := memstore.New(memstore.Config{Now: clock.Now})
	if err != nil {
		t.Fatal(err)
	}
	l, err := mete.New(store, load(t, rules), mete.Config{Now: clock.Now})
	if err != nil {
		t.Fatal(err)
	}
	return l, clock
}

// Clients fill the queue of a leaky bucket, and all but the last disconnect. Each place in the queue is
// assigned once.
func TestCancel_OfAQueueGivesNoPlaceOutTwice(t *testing.T) {
	l, _ := canceling(t, `{"name": "r", "limit_keys": [], "algorithm": "leaky_bucket", "algorithm_config": {"rps": 10, "queue": 100}}`)
	starts := map[time.Duration]int{}
	for range 20 {
		held := hold(t, l)
		if len(held) == 0 {
			break
		}
		cancelAll(t, held[:len(held)-1])
		starts[held[len(held)-1].Wait]++
	}
	for wait, n := range starts {
		if n > 1 {
			t.Errorf("%d requests start after %v, want 1", n, wait)
		}
	}
}

// A stage delays clients until the bucket has refilled, and they disconnect. The refill belongs to them: the
// bucket admits its capacity once.
func TestCancel_OfDelayedRequestsKeepsTheRefill(t *testing.T) {
	l, clock := canceling(t, `{"name": "r", "limit_keys": [], "algorithm_config": {"rps": 50, "burst": 100,
		"staged_actions": [{"threshold": 0, "action": "throttle", "delay": "2s"}]}}`)
	held := hold(t, l)
	clock.Advance(1_990_000)
	admitted := len(hold(t, l))
	cancelAll(t, held)
	if admitted += len(hold(t, l)); len(held) != 100 || admitted > 100 {
		t.Errorf("%d were held, and then %d admitted at one instant; the capacity is 100", len(held), admitted)
	}
}

// Tokens of one window do not return in the next.
func TestCancel_InTheNextWindowGivesNothingBack(t *testing.T) {
	l, clock := canceling(t, `{"name": "r", "limit_keys": [], "algorithm": "fixed_window", "algorithm_config": {"tokens": 100, "window": "1h"}}`)
	held := hold(t, l)
	clock.Advance(time.Hour.Microseconds())
	admitted := len(hold(t, l))
	cancelAll(t, held)
	if admitted += len(hold(t, l)); admitted != 100 {
		t.Errorf("%d admitted in one window, the limit is 100", admitted)
	}
}

// A canceled reservation of a sharded bucket returns the tokens that have not refilled.
func TestCancel_OfShardsKeepsTheRefill(t *testing.T) {
	l, clock := canceling(t, `{"name": "r", "limit_keys": [], "algorithm_config": {"rps": 40, "burst": 40, "shards": 4}}`)
	take := func() int { return len(hold(t, l)) }
	held := hold(t, l)
	clock.Advance(500_000)
	again := take() // half of it has refilled
	cancelAll(t, held[:20])
	if more := take(); len(held) != 40 || again != 20 || more > 10 {
		t.Errorf("took %d, after half a second %d, and %d more by 20 cancellations; want 40, 20 and at most 10", len(held), again, more)
	}
}

// A settlement before the start of the work returns nothing, because the work keeps its start. After the start
// it returns the tokens that have not refilled.
func TestSettle_BeforeAndAfterTheStart(t *testing.T) {
	l, clock := canceling(t, `{"name": "r", "limit_keys": [], "algorithm_config": {"rps": 1, "burst": 3}}`)
	reserve := func() *mete.Reservation {
		t.Helper()
		r, err := l.Reserve(t.Context(), mete.Request{Cost: 5, MaxWait: 2 * time.Second})
		if err != nil || !r.Allowed || r.Wait != 2*time.Second {
			t.Fatalf("%+v, %v", r, err)
		}
		return r
	}
	r := reserve()
	if err := r.Settle(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	if left := remaining(t, l); left != 0 {
		t.Errorf("settled before its start: %v left, want 0: the rest keeps its instant", left)
	}
	clock.Advance(10_000_000)
	r = reserve()
	clock.Advance(2_000_000)
	if err := r.Settle(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	if left := remaining(t, l); left != 3*bucket.Token {
		t.Errorf("settled at its start: %v left, want 3", left)
	}
}

// A retry of a sharded request is answered from its marker, which does not contain the instant of the take.
// Canceling it returns nothing.
func TestCancel_OfARetryWithShardsGivesNothingBack(t *testing.T) {
	l, clock := canceling(t, `{"name": "r", "limit_keys": [], "algorithm_config": {"rps": 40, "burst": 40, "shards": 4}}`)
	reserve := func() *mete.Reservation {
		t.Helper()
		r, err := l.Reserve(t.Context(), mete.Request{Cost: 40, ID: "once"})
		if err != nil || !r.Allowed {
			t.Fatalf("%+v, %v", r, err)
		}
		return r
	}
	reserve()
	clock.Advance(2_000_000)
	admitted := len(hold(t, l))
	cancelAll(t, []*mete.Reservation{reserve()})
	if admitted += len(hold(t, l)); admitted != 40 {
		t.Errorf("%d admitted at one instant, the capacity is 40", admitted)
	}
}

// A refund with an ID returns the same amount to a bucket with and without shards.
func TestRefund_OfShardsWithAnID(t *testing.T) {
	for _, id := range []string{"", "once"} {
		l, _ := canceling(t, `{"name": "r", "limit_keys": [], "algorithm_config": {"rate": "1/1h", "burst": 100, "shards": 10}}`)
		take(t, l, 10)
		for range 2 {
			if err := l.Refund(t.Context(), mete.Request{Cost: 5, ID: id}); err != nil {
				t.Fatal(err)
			}
		}
		want := map[string]bucket.Tokens{"": 100 * bucket.Token, "once": 95 * bucket.Token}[id]
		if left := remaining(t, l); left != want {
			t.Errorf("ID %q: %v left after two refunds of 5 of 10, want %v", id, left, want)
		}
	}
}
