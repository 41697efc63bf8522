// SPDX-License-Identifier: Apache-2.0

package pgstore

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/testseed"
	"github.com/metehq/mete/store"
	"github.com/metehq/mete/storetest"
)

// TestLog_Long fills a sliding log to its maximum number of entries, and beyond.
func TestLog_Long(t *testing.T) {
	l, _, err := bucket.Spec{Algorithm: bucket.AlgorithmSlidingLog, Rate: bucket.Rate{Tokens: bucket.MaxLogTokens, Per: time.Second}}.Compile()
	if err != nil {
		t.Fatal(err)
	}
	a := newAgreement(t, 0)
	r := rand.New(testseed.PCG(3, 5))
	a.clock.Advance(1)
	var entries []bucket.Entry
	var numbers []int64
	for range bucket.MaxLogEntries - 6 { // except six
		e := bucket.Entry{At: a.clock.Now(), Cost: bucket.Tokens(1 + r.Int64N(20))}
		entries, numbers = append(entries, e), append(numbers, int64(e.At), int64(e.Cost))
		a.clock.Advance(10)
	}
	log := bucket.NewLog(entries)
	model := bucket.State{AsOf: entries[len(entries)-1].At, Unit: 1, Log: log}
	for _, e := range entries {
		model.Spent += int64(e.Cost)
	}
	if _, err := a.pool.Exec(t.Context(), "INSERT INTO "+a.table()+" (key, lim, spent, as_of, full_at, log) VALUES ('p:k', $1, $2, $3, 0, $4)",
		limVersion+l.Encode(), model.Spent, int64(model.AsOf), numbers); err != nil {
		t.Fatal(err)
	}
	charge := func(cost bucket.Tokens) []store.Charge { return []store.Charge{{Key: "k", Limit: l, Cost: cost}} }
	take := func(cost bucket.Tokens, dry bool) {
		t.Helper()
		got, allowed, err := a.store.Take(t.Context(), nil, charge(cost), mete.Mode{DryRun: dry})
		want := l.Peek(model, a.clock.Now(), cost, 0)
		if !dry {
			model, want = l.Take(model, a.clock.Now(), cost)
		}
		if err != nil || allowed != want.Allowed || !slices.Equal(got, []bucket.Snapshot{want}) {
			t.Fatalf("taking %v at %d: %v, %+v, %v; want %+v", cost, a.clock.Now(), allowed, got, err, want)
		}
	}
	var tail []bucket.Instant
	for i := range 15 { // beyond the maximum, the last two are merged
		a.clock.Advance(int64(i % 3)) // some at the same instant
		take(bucket.Tokens(1+i), false)
		tail = append(tail, a.clock.Now())
	}
	for rest := range bucket.Tokens(8) { // with so few tokens left
		take(l.Capacity()-rest, true)
	}
	take(l.Capacity(), false)
	refund := func(most int64) {
		t.Helper()
		back := bucket.Tokens(r.Int64N(most))
		if err := a.store.Refund(t.Context(), storetest.Refunds(charge(back)...), ""); err != nil {
			t.Fatal(err)
		}
		model = l.Refund(model, a.clock.Now(), back)
	}
	for range 4 { // entries expire one after another
		a.clock.Advance(232_000)
		take(l.Capacity()/2, true)
		take(l.Capacity()-3000, true)
		refund(40)
		take(bucket.Tokens(1+r.Int64N(2000)), false)
	}
	a.clock.Set(entries[3000].At + 1_000_000)
	for i := range 12 { // or one
		if i < 4 {
			refund(90)
		}
		a.clock.Advance(27)
		take(l.Capacity(), true)
	}
	for _, at := range tail {
		for _, before := range []bucket.Instant{1, 0} {
			a.clock.Set(at + 1_000_000 - before)
			take(l.Capacity(), true)
		}
	}
	a.clock.Set(a.clock.Now() + 1_000_000 - 1) // the last take expires soon
	take(l.Capacity(), false)
	a.clock.Advance(1)
	take(l.Capacity(), false)
	take(1, false)
}
