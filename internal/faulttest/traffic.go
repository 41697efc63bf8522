// SPDX-License-Identifier: Apache-2.0

package faulttest

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
	"github.com/metehq/mete/store"
)

// A Taker takes the same again and again.
type Taker struct {
	Charges []store.Charge
	IDs     bool // takes have IDs, and are made again until they are answered
	Patient bool // takes wait as long as it takes

	Calls    []Call // to be read once the traffic has stopped
	answered atomic.Int64
	ended    atomic.Int64 // takes that were answered or failed
}

// within is how long takes wait.
func (k *Taker) within() time.Duration {
	if k.Patient {
		return Patience
	}
	return Within
}

// Answered is how many takes have been answered.
func (k *Taker) Answered() int64 { return k.answered.Load() }

// A Call is a take as its caller sees it.
type Call struct {
	Began, Ended time.Time
	Within       time.Duration // how long the caller waited at most
	Err          error

	first   time.Time // when it was first made
	allowed bool
	doubt   bool // it was made before, and may have been spent
}

// A Place is what is tested. All of it is required, but for Unsure.
type Place struct {
	Store mete.Store
	Name  string                        // of the store, in its errors
	State func(key string) bucket.State // reads a bucket past the store, as an operator would
	Slack time.Duration                 // that a machine which does other things too may add to Within

	// Unsure says of which buckets more may be missing than anybody has taken.
	Unsure func(key string) bool

	// Parts says that a take of several buckets may be undone some time after it was
	// made. It keeps what refilled until then, or the bucket would have it twice.
	Parts bool
}

// Traffic are takes that go on while something breaks.
type Traffic struct {
	Takers []*Taker

	t      *testing.T
	place  Place
	primes map[string]Call         // the first takes
	states map[string]bucket.State // after them

	end     context.CancelFunc
	running sync.WaitGroup
	stalls  []stall // once it has stopped
}

// Patiently has takers wait for their answers, where all must have one.
func Patiently(takers []*Taker) []*Taker {
	for _, k := range takers {
		k.Patient = true
	}
	return takers
}

// Start lets takers take until [Traffic.Stop]. It takes from all of their buckets
// first, so that none is full.
func Start(t *testing.T, place Place, takers []*Taker) *Traffic {
	t.Helper()
	tr := &Traffic{t: t, place: place, Takers: takers, primes: map[string]Call{}, states: map[string]bucket.State{}}
	for _, first := range tr.buckets() {
		first.Cost = primed(first.Limit)
		c := Call{Began: time.Now()}
		Eventually(t, fmt.Sprintf("the first take of %q is answered", first.Key), func() error { // a slow machine may be late
			_, c.allowed, c.Err = place.Store.Take(t.Context(), nil, []store.Charge{first}, mete.Mode{ID: "first of " + first.Key})
			return c.Err
		})
		if !c.allowed {
			t.Fatalf("the first take of %q was denied", first.Key)
		}
		c.first, c.Ended = c.Began, time.Now()
		tr.primes[first.Key], tr.states[first.Key] = c, place.State(first.Key)
	}
	tr.start(0)
	return tr
}

// Beside lets other takers take from the same store, from buckets as they are.
func (tr *Traffic) Beside(takers []*Taker) *Traffic {
	more := &Traffic{t: tr.t, place: tr.place, Takers: takers}
	more.start(len(tr.Takers))
	return more
}

func (tr *Traffic) start(number int) {
	ctx, cancel := context.WithCancel(context.Background())
	tr.end = cancel
	tr.t.Cleanup(tr.Stop)
	tr.running.Go(func() { tr.stalls = watch(ctx) })
	for i, k := range tr.Takers {
		tr.running.Go(func() { tr.run(ctx, number+i, k) })
	}
}

func (tr *Traffic) run(ctx context.Context, number int, k *Taker) {
	ticker := time.NewTicker(turn)
	defer ticker.Stop()
	first, again, doubt := time.Time{}, false, false
	within, late := k.within(), 0
	for n := 0; ; {
		mode := mete.Mode{Within: within}
		if k.IDs {
			mode.ID = fmt.Sprintf("%d-%d", number, n)
		}
		c := Call{Began: time.Now(), Within: within}
		if !again {
			first, doubt = c.Began, false
		}
		c.first, c.doubt = first, doubt
		_, c.allowed, c.Err = tr.place.Store.Take(context.Background(), nil, k.Charges, mode)
		c.Ended = time.Now()
		k.Calls = append(k.Calls, c)
		k.ended.Add(1)
		if again = k.IDs && c.Err != nil; !again {
			n++
		}
		doubt = doubt || c.Err != nil && mete.Spent(c.Err) == mete.MaybeSpent
		switch {
		case c.Err == nil:
			k.answered.Add(1)
			late = 0
		case c.Ended.Sub(c.Began) >= within:
			late++
		}
		// A machine that is so slow that it is never in time has longer.
		within = min(k.within()<<min(late/unanswered, 5), Patience)
		end := ctx.Done()
		if again { // until it is answered
			end = nil
		}
		if again && ctx.Err() != nil && time.Since(first) > Patience {
			tr.t.Errorf("a take of %q with an ID is not answered at last: %v", k.Charges[0].Key, c.Err)
			return
		}
		select {
		case <-ticker.C:
		case <-end:
			return
		}
	}
}

// GoesOn waits until takers, or all, have been answered so many times more. A slow
// machine has time, as long as it goes on.
func (tr *Traffic) GoesOn(times int64, takers ...*Taker) {
	tr.t.Helper()
	tr.counts("takes are answered", times, takers, func(k *Taker) int64 { return k.answered.Load() })
}

// Ends waits until takers, or all, have ended so many takes more, by an answer or a
// failure. A fault lasts that long.
func (tr *Traffic) Ends(times int64, takers ...*Taker) {
	tr.t.Helper()
	tr.counts("takes end", times, takers, func(k *Taker) int64 { return k.ended.Load() })
}

// counts waits until the count of each taker has grown by so many.
func (tr *Traffic) counts(what string, times int64, takers []*Taker, count func(*Taker) int64) {
	tr.t.Helper()
	if takers == nil {
		takers = tr.Takers
	}
	before := make([]int64, len(takers))
	for i, k := range takers {
		before[i] = count(k) + 1 // one may have been on its way
	}
	for want := int64(1); want <= times; want++ {
		Eventually(tr.t, what, func() error {
			for i, k := range takers {
				if got := count(k) - before[i]; got < want {
					return fmt.Errorf("taker of %q, IDs: %t: %d of %d", k.Charges[0].Key, k.IDs, got, times)
				}
			}
			return nil
		})
	}
}

// Stop ends the traffic. It may be called again.
func (tr *Traffic) Stop() {
	tr.end()
	tr.running.Wait()
}

// buckets are one charge of each bucket.
func (tr *Traffic) buckets() []store.Charge {
	var all []store.Charge
	for _, k := range tr.Takers {
		for _, c := range k.Charges {
			if !slices.ContainsFunc(all, func(b store.Charge) bool { return b.Key == c.Key }) {
				all = append(all, c)
			}
		}
	}
	return all
}
