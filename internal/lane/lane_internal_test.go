// SPDX-License-Identifier: Apache-2.0

package lane

import (
	"context"
	"testing"
	"time"

	"github.com/metehq/mete"
)

type order struct{ Ticket }

// A list is a batch without a server.
type list []*order

func (l *list) Reset()                          { *l = (*l)[:0] }
func (l *list) Add(o *order) bool               { *l = append(*l, o); return true }
func (l *list) Asks() []*order                  { return *l }
func (l *list) Run(time.Duration) time.Duration { return 0 }

// TestLane_ForgetsWhoLeft has callers come and go while calls are in flight. The queue holds few abandoned asks.
func TestLane_ForgetsWhoLeft(t *testing.T) {
	l := New(Config[*order]{MaxQueue: 100, MaxBatch: 100, MaxInFlight: 1}).At(0)
	l.inFlight = 1
	var waiting []*order
	for i := range 10_000 {
		o := &order{Ticket{done: make(chan struct{}, 1)}}
		if err := l.enqueue(o); err != nil {
			t.Fatalf("submit %d: %v, with %d in the queue", i, err, l.waiting)
		}
		if i%1000 == 0 {
			waiting = append(waiting, o)
		} else if free, err := l.abandon(&o.Ticket, context.Canceled); free || mete.Spent(err) != mete.NotSpent {
			t.Fatalf("leave %d: free %v, %v", i, free, err)
		}
		if len(l.queue) > 2*len(waiting)+200 {
			t.Fatalf("%d in the queue, of which %d wait", len(l.queue), len(waiting))
		}
	}
	var b list
	if !l.fill(&b, 0) || len(b) != len(waiting) || l.waiting != 0 || len(l.queue) != 0 {
		t.Fatalf("%d go, %d wait, %d are in the queue; want all %d to go", len(b), l.waiting, len(l.queue), len(waiting))
	}
	for i, o := range b {
		if o != waiting[i] {
			t.Errorf("ask %d is not the one that came then", i)
		}
	}
}
