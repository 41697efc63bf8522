// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"context"
	"testing"

	"github.com/metehq/mete"
)

// TestLane_ForgetsWhoLeft has callers come and go while the wire is busy. However
// many they are, the queue has no more of them than wait, and some.
func TestLane_ForgetsWhoLeft(t *testing.T) {
	s := &Store{config: Config{MaxQueue: 100, MaxBatch: 100, MaxInFlight: 1}}
	l := &lane{store: s, flying: 1}
	var waiting []*ask
	for i := range 10_000 {
		a := newAsk(opTake, nil, mete.Mode{})
		if err := l.submit(a); err != nil {
			t.Fatalf("submit %d: %v, with %d in the queue", i, err, l.waiting)
		}
		if i%1000 == 0 {
			waiting = append(waiting, a)
		} else if answered, err := l.leave(a, context.Canceled); answered || mete.Spent(err) != mete.NotSpent {
			t.Fatalf("leave %d: answered %v, %v", i, answered, err)
		}
		if len(l.queue) > 2*len(waiting)+200 {
			t.Fatalf("%d in the queue, of which %d wait", len(l.queue), len(waiting))
		}
	}
	var p program
	if !l.load(&p, 0) || len(p.asks) != len(waiting) || l.waiting != 0 || len(l.queue) != 0 {
		t.Fatalf("%d go, %d wait, %d are in the queue; want all %d to go", len(p.asks), l.waiting, len(l.queue), len(waiting))
	}
	for i, a := range p.asks {
		if a != waiting[i] {
			t.Errorf("ask %d is not the one that came then", i)
		}
	}
}
