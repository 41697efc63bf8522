// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"fmt"
	"testing"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/proctest"
	"github.com/metehq/mete/store"
	"github.com/metehq/mete/storetest"
	"github.com/redis/rueidis"
)

// attempts are takes in two parts, one bucket in each of two slots, step by step.
type attempts struct {
	*testing.T
	store   *Store
	charges []store.Charge
}

func startAttempts(t *testing.T) *attempts {
	t.Helper()
	return startAttemptsBy(t, nil)
}

// startAttemptsBy starts attempts with a clock; nil is the server's.
func startAttemptsBy(t *testing.T, now func() bucket.Instant) *attempts {
	t.Helper()
	client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: proctest.StartCluster(t, 3, 0).Addrs, DisableCache: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	s, err := New(client, Config{Timeout: 30 * time.Second, Now: now})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	l, err := bucket.NewLimit(10*bucket.Token, bucket.Rate{Tokens: bucket.Token, Per: 1000 * time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	a := &attempts{T: t, store: s}
	for _, key := range []string{"{a}", "{b}"} {
		a.charges = append(a.charges, store.Charge{Key: key, Limit: l, Cost: bucket.Token})
	}
	return a
}

func (a *attempts) begin(id, attempt string) *partsTake {
	return &partsTake{
		store: a.store, charges: a.charges, mode: mete.Mode{ID: id}, attempt: attempt,
		parts: a.store.splitCharges(a.charges, bySlot), snaps: make([]bucket.Snapshot, len(a.charges)),
	}
}

// take takes part i of an attempt.
func (a *attempts) take(t *partsTake, i int) {
	a.Helper()
	if allowed, err := t.take(a.Context(), i); err != nil || !allowed {
		a.Fatalf("attempt %s, part %d: allowed %v, %v", t.attempt, i, allowed, err)
	}
}

// missing asserts the spent tokens of the first part's bucket.
func (a *attempts) missing(want bucket.Tokens) {
	a.Helper()
	c := a.begin("", "").parts[0].charges[0]
	snaps, _, err := a.store.Take(a.Context(), nil, []store.Charge{{Key: c.Key, Limit: c.Limit}}, mete.Mode{DryRun: true})
	if err != nil {
		a.Fatal(err)
	}
	if got := c.Limit.Capacity() - snaps[0].Remaining(); got != want*bucket.Token {
		a.Errorf("%v tokens are missing, want %v", got, want*bucket.Token)
	}
}

// TestAttempts_AtOnce sends a request twice at a time. If one attempt is undone, the other's tokens stay spent
// until it is undone itself.
func TestAttempts_AtOnce(t *testing.T) {
	t.Parallel()
	a := startAttempts(t)

	first, second := a.begin("x", "first"), a.begin("x", "second")
	a.take(first, 0)
	a.take(second, 0)
	a.missing(1)
	second.undo(1) // because its second part failed
	a.missing(1)
	a.take(first, 1) // admitted

	again := a.begin("x", "again")
	a.take(again, 0)
	a.missing(1)
	again.undo(1)
	again.undo(1)
	a.missing(1)

	for i, last := range []string{"first", "second"} {
		id := fmt.Sprint("y", i)
		first, second := a.begin(id, "first"), a.begin(id, "second")
		a.take(first, 0)
		a.take(second, 0)
		order := []*partsTake{second, first}
		if last == "second" {
			order = []*partsTake{first, second}
		}
		order[0].undo(1)
		a.missing(2)
		order[1].undo(1) // the last attempt is undone
		order[1].undo(1)
		a.missing(1)
	}
}

// TestAttempts_Many makes too many attempts to record all of them: their tokens stay spent.
func TestAttempts_Many(t *testing.T) {
	t.Parallel()
	a := startAttempts(t)
	var all []*partsTake
	for i := range 300 {
		all = append(all, a.begin("x", fmt.Sprint("attempt", i)))
		a.take(all[i], 0)
	}
	for _, t := range all {
		t.undo(1)
	}
	a.missing(1)
	all[0].undo(1)
	a.missing(1)
	key := all[0].memoryKey(0)
	text, err := a.store.client.Do(t.Context(), a.store.client.B().Get().Key(key).Build()).ToString()
	if err != nil || len(text) > 1000 {
		t.Errorf("%q, %v is remembered; want something short", text, err)
	}
}

// TestAttempts_AreRemembered proves how long attempts are remembered.
func TestAttempts_AreRemembered(t *testing.T) {
	a := startAttempts(t)
	first, second := a.begin("x", "first"), a.begin("x", "second")
	a.take(first, 0)
	lives := func() {
		t.Helper()
		ms, err := a.store.client.Do(t.Context(), a.store.client.B().Pttl().Key(first.memoryKey(0)).Build()).AsInt64()
		if got := time.Duration(ms) * time.Millisecond; err != nil || got < store.RetryHorizon-20*time.Second || got > store.RetryHorizon {
			t.Errorf("remembered for another %v, %v; want %v", got, err, store.RetryHorizon)
		}
	}
	lives()
	a.take(second, 0)
	lives()
	second.undo(1)
	lives()
}

// TestAttempts_UndoWhatMayHaveBeenTaken undoes a part after a lost answer. Redis remembers which attempt took it,
// and refunds nothing if none did.
func TestAttempts_UndoWhatMayHaveBeenTaken(t *testing.T) {
	t.Parallel()
	a := startAttempts(t)
	for _, arrived := range []bool{true, false} {
		lost := a.begin(fmt.Sprint(arrived), "lost")
		if arrived {
			a.take(lost, 0)
			a.missing(1)
		}
		lost.snaps = make([]bucket.Snapshot, len(a.charges))
		lost.undo(1)
		a.missing(0)
		again := a.begin(fmt.Sprint(arrived), "again")
		a.take(again, 0) // charged, because nothing is remembered
		a.missing(1)
		again.undo(1)
		a.missing(0)
	}
}

// TestAttempts_SeenWithoutAName repeats an attempt's take in one step. Its caller has seen it admitted, so the
// tokens stay spent.
func TestAttempts_SeenWithoutAName(t *testing.T) {
	a := startAttempts(t)
	a.charges = a.charges[:1]
	first := a.begin("x", "first")
	a.take(first, 0)
	if _, allowed, err := a.store.Take(t.Context(), nil, a.charges, mete.Mode{ID: "x"}); err != nil || !allowed {
		t.Fatalf("allowed %v, %v", allowed, err)
	}
	first.undo(1)
	a.missing(1)
}

// TestUndo_KeepsNoRefill undoes takes after the bucket has refilled and another take has spent the refill.
// Returning all tokens would admit more than the capacity and the refill.
func TestUndo_KeepsNoRefill(t *testing.T) {
	t.Parallel()
	clock := storetest.NewClock()
	a := startAttemptsBy(t, clock.Now)
	l, err := bucket.NewLimit(20*bucket.Token, bucket.PerSecond(1000*bucket.Token))
	if err != nil {
		t.Fatal(err)
	}
	for i := range a.charges {
		a.charges[i].Limit, a.charges[i].Cost = l, 20*bucket.Token
	}
	for _, id := range []string{"", "x"} {
		for _, tt := range []struct {
			late int64 // in milliseconds
			back bucket.Tokens
		}{{0, 20}, {5, 15}, {20, 0}, {50, 0}} {
			clock.Advance(1e6)
			slow := a.begin(id, fmt.Sprint("attempt", tt.late))
			a.take(slow, 0)
			clock.Advance(tt.late * 1000)
			admitted := 20 * bucket.Token // by the slow take, until it is undone
			if tt.late >= 20 {
				c := slow.parts[0].charges
				if _, allowed, err := a.store.Take(t.Context(), nil, c, mete.Mode{}); err != nil || !allowed {
					t.Fatalf("allowed %v, %v", allowed, err)
				}
			} else {
				admitted -= bucket.Tokens(tt.late) * bucket.Token // has refilled
			}
			slow.undo(1)
			a.missing(admitted/bucket.Token - tt.back)
		}
	}
}

// TestUndo_Once undoes a take without an ID twice, as after a lost answer, and together with other asks.
func TestUndo_Once(t *testing.T) {
	t.Parallel()
	a := startAttempts(t)
	charges := a.begin("", "").parts[0].charges
	for range 5 {
		if _, allowed, err := a.store.Take(t.Context(), nil, charges, mete.Mode{}); err != nil || !allowed {
			t.Fatalf("allowed %v, %v", allowed, err)
		}
	}
	marker := a.store.companionKey("id:", charges[0].Key, "undo")
	for range 3 {
		var p program
		p.reset(a.store.config.Prefix, a.store.now())
		undo, take := newRefund(storetest.Refunds(charges...)), newAsk(opTake, charges, mete.Mode{UpTo: true})
		undo.memory = marker
		p.add(undo)
		p.add(take)
		a.store.run(&p, a.store.config.Timeout)
		if undo.Err != nil || take.Err != nil || !take.allowed {
			t.Fatalf("undo: %v; take: allowed %v, %v", undo.Err, take.allowed, take.Err)
		}
	}
	a.missing(5 - 1 + 3)
	if ms, err := a.store.client.Do(t.Context(), a.store.client.B().Pttl().Key(marker).Build()).AsInt64(); err != nil || ms < (store.RetryHorizon/2).Milliseconds() {
		t.Errorf("that it was given back is remembered for another %d ms, %v", ms, err)
	}
}
