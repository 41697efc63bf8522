// SPDX-License-Identifier: Apache-2.0

package lease_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/lease"
)

// A gauge compares the documented under-use with the real one, in runs without refunds, resets or undone takes.
type gauge struct {
	w       *world
	ideal   bucket.State // a bucket that every request is charged to
	seen    int          // of the record
	entries int          // the maximum at any time

	unspent, missing float64 // the worst case so far, as a fraction of the bound
	lag              bucket.Tokens
}

func (w *world) gauge() *gauge {
	g := &gauge{w: w}
	w.watch = g.watch
	return g
}

func (g *gauge) watch() {
	w := g.w
	for _, h := range w.record[g.seen:] {
		g.ideal, _ = w.limit.Take(g.ideal, h.at, h.amount)
	}
	g.seen = len(w.record)
	c := w.book.Clone()
	now := c.Settle(&w.limit, w.instant())
	g.entries = max(g.entries, len(c.Entries))
	if g.entries == 0 {
		return
	}
	slice := w.limit.Capacity() / 10
	losses := w.over + w.unknown
	most := bucket.Tokens(g.entries) * slice

	unspent := w.lent - w.back - w.spent
	if unspent > most+losses {
		w.t.Fatalf("%v: %v charged and not spent, want at most %d·%v + %v", w.now, unspent, g.entries, slice, losses)
	}
	g.unspent = max(g.unspent, float64(unspent)/float64(most+losses))

	there := w.limit.Peek(c.State, now, 0, 0).Remaining()
	g.lag = w.limit.Peek(g.ideal, now, 0, 0).Remaining() - there
	if g.lag > 2*most+losses+1 { // Remaining is rounded
		w.t.Fatalf("%v: the bucket misses %v, want at most 2·%d·%v + %v", w.now, g.lag, g.entries, slice, losses)
	}
	g.missing = max(g.missing, float64(g.lag)/float64(2*most+losses))
}

func TestUnderUse_Kept(t *testing.T) {
	for name, spec := range specs {
		for seed := range uint64(2) {
			t.Run(fmt.Sprintf("%s, seed %d", name, seed), func(t *testing.T) {
				w := newWorld(t, seed+100, spec)
				g := w.gauge()
				for range 4 {
					w.startWithClients(10 * time.Second)
				}
				w.chance = chances{loseRequest: 0.02, loseReply: 0.02, late: 0.02}
				for at := time.Second; at < 10*time.Second; at += 3 * time.Second {
					w.after(at, func() {
						w.nodes[w.r.IntN(len(w.nodes))].crash()
						w.startWithClients(10*time.Second - at)
					})
				}
				w.run(10 * time.Second)
				w.calm()
				t.Logf("at most %.2f of what may be unspent, %.2f of what may be missing", g.unspent, g.missing)
				if g.lag != 0 {
					t.Errorf("after a long silence %v is missing", g.lag)
				}
			})
		}
	}
}

// TestUnderUse_Approached comes close to both bounds. Four nodes request more than their share in every period,
// at the rate of the refill.
func TestUnderUse_Approached(t *testing.T) {
	w := newWorld(t, 1, bucket.Spec{Capacity: 1000 * bucket.Token, Rate: bucket.PerSecond(8000 * bucket.Token)})
	g := w.gauge()
	for range 4 {
		w.start(lease.Config{}).every(4*time.Millisecond, 3*time.Second, 6, bucket.Token)
	}
	w.run(2 * time.Second)

	// The network fails. The nodes spend all leased tokens, and the bucket refills only up to the recorded
	// leases.
	w.refuse = true
	w.run(250 * time.Millisecond)
	// Then it delivers the loans of all nodes at once: each gets a full slice.
	w.refuse, w.held = false, w.now+450*time.Millisecond
	w.run(3 * time.Second)
	w.calm()

	t.Logf("%.3f of what may be unspent, %.3f of what may be missing", g.unspent, g.missing)
	if g.unspent < 0.9 {
		t.Errorf("at most %.3f of N·s was unspent at a time, want at least 0.9", g.unspent)
	}
	if g.missing < 0.9 {
		t.Errorf("at most %.3f of 2·N·s + L was missing at a time, want at least 0.9", g.missing)
	}
	if n := w.verify(); n > 0 {
		t.Errorf("%d takes are beyond capacity + rate·t", n)
	}
}

// TestUnderUse_Crash proves that a crash costs the node's leased tokens, once.
func TestUnderUse_Crash(t *testing.T) {
	w := newWorld(t, 1, bucket.Spec{Capacity: 1000 * bucket.Token, Rate: bucket.PerSecond(5000 * bucket.Token)})
	n := w.start(lease.Config{})
	n.every(time.Millisecond, time.Second, 1, bucket.Token)
	w.run(time.Second)
	held := bucket.Tokens(n.borrower.Held(key, n.clock()))
	if held == 0 {
		t.Fatal("the node holds nothing")
	}
	n.crash()
	w.calm()
	w.settle()
	if lost := w.lent - w.back - w.spent; lost != held {
		t.Errorf("%v was lost, want the %v that the node held", lost, held)
	}
	if w.missing() != 0 || w.book.Leased() != 0 {
		t.Errorf("%v is lent and %d units are missing long after the crash", w.book.Leased(), w.missing())
	}
}
