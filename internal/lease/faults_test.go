// SPDX-License-Identifier: Apache-2.0

package lease_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/lease"
)

var specs = map[string]bucket.Spec{
	"continuous": {Capacity: 1000 * bucket.Token, Rate: bucket.PerSecond(3000 * bucket.Token)},
	"slow":       {Capacity: 1500 * bucket.Token, Rate: bucket.Rate{Tokens: 700 * bucket.Token, Per: 900_001 * time.Microsecond}},
	"stepped": {
		Algorithm: bucket.AlgorithmStepped, Capacity: 1000 * bucket.Token,
		Rate: bucket.Rate{Tokens: 400 * bucket.Token, Per: 130 * time.Millisecond},
	},
}

// storm injects all faults for d.
func (w *world) storm(d time.Duration) {
	until := w.now + d
	w.chance = chances{loseRequest: 0.05, loseReply: 0.05, late: 0.05, untake: 0.1}
	again := func(mean time.Duration, do func()) {
		var next func()
		next = func() {
			if w.now < until {
				do()
				w.after(time.Duration(w.r.ExpFloat64()*float64(mean)), next)
			}
		}
		w.after(mean/2, next)
	}
	again(3*time.Second, func() {
		if len(w.nodes) > 1 {
			w.nodes[w.r.IntN(len(w.nodes))].crash()
			w.startWithClients(until - w.now)
		}
	})
	again(1500*time.Millisecond, func() { w.refund(bucket.Tokens(w.r.Int64N(int64(w.limit.Capacity())))) })
	again(4*time.Second, func() {
		w.reset()
		w.nodes[w.r.IntN(len(w.nodes))].borrower.Drop(key)
	})
	for at := 2 * time.Second; at < d; at += 7 * time.Second { // Grace covers one at a time
		w.after(at, func() { w.step(time.Duration(w.r.Int64N(int64(7*time.Second))) - 5*time.Second) })
	}
	w.run(d)
}

// startWithClients starts a node with clients of different kinds.
func (w *world) startWithClients(d time.Duration) {
	n := w.start(lease.Config{})
	switch w.began % 4 {
	case 0: // hot
		n.every(700*time.Microsecond, d, 1, bucket.Token)
	case 1: // bursts
		n.every(250*time.Millisecond, d, 200, bucket.Token)
	case 2: // varying costs, and lower load
		n.every(3*time.Millisecond, d, 1, 250)
		n.every(20*time.Millisecond, d, 1, 7*bucket.Token)
	case 3: // nearly idle, then hot for a moment
		n.every(900*time.Millisecond, d, 60, bucket.Token)
		n.every(300*time.Millisecond, d, 1, bucket.Token)
	}
}

// calm runs without faults until all entries have ended.
func (w *world) calm() {
	w.chance = chances{}
	w.run(20 * time.Second)
}

func TestFaults_BoundHolds(t *testing.T) {
	for name, spec := range specs {
		for seed := range uint64(4) {
			t.Run(fmt.Sprintf("%s, seed %d", name, seed), func(t *testing.T) {
				w := newWorld(t, seed, spec)
				for range 4 {
					w.startWithClients(12 * time.Second)
				}
				w.storm(12 * time.Second)
				w.calm()
				if n := w.verify(); n > 0 {
					t.Errorf("%d of %d takes are beyond capacity + rate·t", n, len(w.record))
				}
				w.conserved()
				t.Logf("%d takes, %d loans answered, %d failed; %v lent, %v spent, %v back",
					len(w.record), w.answered, w.failed, w.lent, w.spent, w.back)
				if w.spent == 0 || w.back == 0 || w.failed == 0 {
					t.Error("nothing was put to the test")
				}
			})
		}
	}
}

// conserved asserts that every granted token was spent, returned, or lost with an entry or an answer, and that no
// lease is left.
func (w *world) conserved() {
	w.t.Helper()
	w.settle()
	lost := w.lent - w.spent - w.back
	if lost < 0 || lost > w.over+w.unknown {
		w.t.Errorf("%v lent, %v spent, %v back: %v lost, want between 0 and %v with entries and %v with answers",
			w.lent, w.spent, w.back, lost, w.over, w.unknown)
	}
	if x := w.book.Leased(); x != 0 {
		w.t.Errorf("%v is still lent", x)
	}
	if missing := w.missing(); missing != 0 {
		w.t.Errorf("%d units are missing after a long silence", missing)
	}
	for _, n := range w.nodes {
		if s := n.borrower.Stats(); s.Leased != 0 || s.Unspent != 0 || s.Spent != n.spent {
			w.t.Errorf("%s: %+v after a long silence, want nothing leased and %v spent", n.name, s, n.spent)
		}
	}
}

// TestFaults_Replay proves that a run depends only on its seed.
func TestFaults_Replay(t *testing.T) {
	run := func() string {
		w := newWorld(t, 7, specs["continuous"])
		for range 4 {
			w.startWithClients(5 * time.Second)
		}
		w.storm(5 * time.Second)
		return fmt.Sprint(len(w.record), w.lent, w.spent, w.back, w.answered, w.failed, w.book, w.record[len(w.record)-1])
	}
	if first, second := run(), run(); first != second {
		t.Errorf("two runs with one seed:\n%s\n%s", first, second)
	}
}

// TestFaults_CheckNotices disables the floor. Buckets then refill completely while nodes hold leases, and the
// check fails.
func TestFaults_CheckNotices(t *testing.T) {
	w := newWorld(t, 1, specs["continuous"])
	w.book.Unfloored = true
	for range 4 {
		n := w.start(lease.Config{})
		n.every(2*time.Millisecond, time.Second, 1, bucket.Token)
		w.after(1100*time.Millisecond, func() { // all tokens of the leases, and of the bucket
			for range 1000 {
				n.take(bucket.Token)
			}
		})
	}
	w.run(3 * time.Second)
	if w.verify() == 0 {
		t.Error("a store without a floor passes")
	}
}
