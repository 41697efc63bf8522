// SPDX-License-Identifier: Apache-2.0

package pgstore_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
)

// A taker takes the same again and again.
type taker struct {
	charges []mete.Charge
	ids     bool // takes have IDs, and are made again until they are answered
	patient bool // takes wait as long as it takes

	calls    []call
	answered atomic.Int64
}

// A call is a take as its caller sees it.
type call struct {
	first, began, ended time.Time // first: when it was first made
	allowed             bool
	err                 error
	doubt               bool // it was made before, and may have been spent
}

// traffic are takes that go on while something breaks.
type traffic struct {
	*place
	takers []*taker
	primes map[string]call         // the first takes
	states map[string]bucket.State // after them

	end     context.CancelFunc
	running sync.WaitGroup
}

// plainAndOthers are takers of all kinds: two for each.
func plainAndOthers() []*taker {
	var all []*taker
	for range 2 {
		all = append(all, &taker{charges: chargesOf("plain")}, &taker{charges: chargesOf("id"), ids: true},
			&taker{charges: chargesOf("one", "other")}, &taker{charges: chargesOf("all:id", "id"), ids: true},
			&taker{charges: chargesOf("vast")}, &taker{charges: chargesOf("vast:2")}, &taker{charges: chargesOf("vast", "vast:3")},
			&taker{charges: chargesOf("vast:2", "vast:id"), ids: true})
	}
	return all
}

// patiently has takers wait for their answers, where all must have one.
func patiently(takers []*taker) []*taker {
	for _, k := range takers {
		k.patient = true
	}
	return takers
}

// primed is how much a bucket lacks at first, so that it is never full.
func primed(l bucket.Limit) bucket.Tokens { return l.Capacity() / 10 * 9 }

// startTraffic lets takers take until stop.
func startTraffic(t *testing.T, p *place, takers []*taker) *traffic {
	t.Helper()
	tr := &traffic{place: p, takers: takers, primes: map[string]call{}, states: map[string]bucket.State{}}
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(func() { cancel(); tr.running.Wait() })
	tr.end = cancel
	for _, first := range tr.buckets() {
		first.Cost = primed(first.Limit)
		c := call{began: time.Now()}
		if c.allowed, c.err = p.take([]mete.Charge{first}, mete.Mode{}); c.err != nil || !c.allowed {
			t.Fatalf("first take of %q: %v, %v", first.Key, c.allowed, c.err)
		}
		c.first, c.ended = c.began, time.Now()
		tr.primes[first.Key], tr.states[first.Key] = c, p.state(first.Key)
	}
	for i, k := range takers {
		tr.running.Go(func() { tr.run(ctx, i, k) })
	}
	return tr
}

func (tr *traffic) run(ctx context.Context, number int, k *taker) {
	ticker := time.NewTicker(turn)
	defer ticker.Stop()
	first, again, doubt := time.Time{}, false, false
	for n := 0; ; {
		mode := mete.Mode{Within: within}
		if k.patient {
			mode.Within = patience
		}
		if k.ids {
			mode.ID = fmt.Sprintf("%d-%d", number, n)
		}
		c := call{began: time.Now()}
		if !again {
			first, doubt = c.began, false
		}
		c.first, c.doubt = first, doubt
		_, c.allowed, c.err = tr.store.Take(context.Background(), nil, k.charges, mode)
		c.ended = time.Now()
		k.calls = append(k.calls, c)
		if again = k.ids && c.err != nil; !again {
			n++
		}
		doubt = doubt || c.err != nil && mete.Spent(c.err) == mete.MaybeSpent
		if c.err == nil {
			k.answered.Add(1)
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			if !again {
				return
			}
			if time.Since(first) > patience {
				tr.t.Errorf("a take of %q with an ID is not answered at last: %v", k.charges[0].Key, c.err)
				return
			}
			<-ticker.C
		}
	}
}

// goesOn waits until takers, or all, have been answered so many times more.
func (tr *traffic) goesOn(times int64, takers ...*taker) {
	tr.t.Helper()
	if takers == nil {
		takers = tr.takers
	}
	before := make([]int64, len(takers))
	for i, k := range takers {
		before[i] = k.answered.Load() + 1 // one may have been on its way
	}
	eventually(tr.t, "takes are answered", func() error {
		for i, k := range takers {
			if got := k.answered.Load() - before[i]; got < times {
				return fmt.Errorf("taker of %q, IDs: %t: %d answers, want %d", k.charges[0].Key, k.ids, got, times)
			}
		}
		return nil
	})
}

// stop ends the traffic.
func (tr *traffic) stop() {
	tr.end()
	tr.running.Wait()
}

// buckets are one charge of each bucket.
func (tr *traffic) buckets() []mete.Charge {
	var all []mete.Charge
	for _, k := range tr.takers {
		for _, c := range k.charges {
			if !slices.ContainsFunc(all, func(b mete.Charge) bool { return b.Key == c.Key }) {
				all = append(all, c)
			}
		}
	}
	return all
}
