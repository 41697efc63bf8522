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

// A Taker repeats the same take.
type Taker struct {
	Charges []store.Charge
	IDs     bool // takes have IDs, and are retried until they are answered
	Patient bool // takes wait without a time limit

	Calls    []Call // read them after Stop
	answered atomic.Int64
	ended    atomic.Int64 // answered or failed takes
}

func (k *Taker) timeout() time.Duration {
	if k.Patient {
		return Patience
	}
	return Within
}

// Answered returns the number of answered takes.
func (k *Taker) Answered() int64 { return k.answered.Load() }

// A Call is a take from the view of its caller.
type Call struct {
	Began, Ended time.Time
	Within       time.Duration // the timeout of the caller
	Err          error

	first   time.Time // the start of the first attempt
	allowed bool
	doubt   bool // an earlier attempt may have spent tokens
}

// A Place is the store under test. All fields except Unsure and Parts are required.
type Place struct {
	Store mete.Store
	Name  string                        // of the store in its errors
	State func(key string) bucket.State // reads a bucket without the store
	Slack time.Duration                 // that a busy machine may add to Within

	// Unsure reports whether a bucket may miss more tokens than the callers took. It may be nil.
	Unsure func(key string) bool

	// Parts is set if a take of several buckets may be undone later. The refill in between is lost, because
	// the bucket would otherwise get it twice.
	Parts bool
}

// Traffic is a set of takers that run during a fault.
type Traffic struct {
	Takers []*Taker

	t      *testing.T
	place  Place
	primes map[string]Call         // the first takes
	states map[string]bucket.State // after the first takes

	end     context.CancelFunc
	running sync.WaitGroup
	stalls  []stall // set by Stop
}

// WaitForever makes takers wait without a time limit.
func WaitForever(takers []*Taker) []*Taker {
	for _, k := range takers {
		k.Patient = true
	}
	return takers
}

// Start runs takers until [Traffic.Stop]. First it takes from all their buckets, so that none is full.
func Start(t *testing.T, place Place, takers []*Taker) *Traffic {
	t.Helper()
	tr := &Traffic{t: t, place: place, Takers: takers, primes: map[string]Call{}, states: map[string]bucket.State{}}
	for _, first := range tr.buckets() {
		first.Cost = primingCost(first.Limit)
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

// AddTakers adds takers for the same store. It leaves their buckets as they are.
func (tr *Traffic) AddTakers(takers []*Taker) *Traffic {
	more := &Traffic{t: tr.t, place: tr.place, Takers: takers}
	more.start(len(tr.Takers))
	return more
}

func (tr *Traffic) start(number int) {
	ctx, cancel := context.WithCancel(context.Background())
	tr.end = cancel
	tr.t.Cleanup(tr.Stop)
	tr.running.Go(func() { tr.stalls = watchStalls(ctx) })
	for i, k := range tr.Takers {
		tr.running.Go(func() { tr.run(ctx, number+i, k) })
	}
}

func (tr *Traffic) run(ctx context.Context, number int, k *Taker) {
	ticker := time.NewTicker(turn)
	defer ticker.Stop()
	first, again, doubt := time.Time{}, false, false
	within, late := k.timeout(), 0
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
		// On a machine that is always late, the timeout grows.
		within = min(k.timeout()<<min(late/maxUnanswered, 5), Patience)
		end := ctx.Done()
		if again { // retry until it is answered
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

// WaitAnswers waits until each of the takers, or of all if there are none, got so many more answers. It fails only
// if progress stops.
func (tr *Traffic) WaitAnswers(times int64, takers ...*Taker) {
	tr.t.Helper()
	tr.waitCounts("takes are answered", times, takers, func(k *Taker) int64 { return k.answered.Load() })
}

// WaitCalls waits until each of the takers, or of all if there are none, ended so many more takes, with an answer
// or an error.
func (tr *Traffic) WaitCalls(times int64, takers ...*Taker) {
	tr.t.Helper()
	tr.waitCounts("takes end", times, takers, func(k *Taker) int64 { return k.ended.Load() })
}

// waitCounts waits until the count of each taker has grown by times.
func (tr *Traffic) waitCounts(what string, times int64, takers []*Taker, count func(*Taker) int64) {
	tr.t.Helper()
	if takers == nil {
		takers = tr.Takers
	}
	before := make([]int64, len(takers))
	for i, k := range takers {
		before[i] = count(k) + 1 // one may be in progress
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

// Stop ends the traffic. It is idempotent.
func (tr *Traffic) Stop() {
	tr.end()
	tr.running.Wait()
}

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
