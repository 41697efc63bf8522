// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/testseed"
	"github.com/metehq/mete/store"
)

// A reset returns the tokens of all holds of a bucket. Their settlements and expiries must not return the tokens again,
// because other clients may have taken them meanwhile.

// checkResetHolds resets a bucket with open holds, and empties it again.
func checkResetHolds(t *testing.T, open Open) {
	resetHolds(t, open, func(s *subject, key string) {
		if err := s.store.Reset(t.Context(), []string{key}); err != nil {
			t.Fatal(err)
		}
	})
}

// checkClearHolds is checkResetHolds for a whole family. A store with families need not have holds.
func checkClearHolds(t *testing.T, open Open) {
	if _, ok := store.As[store.Holder](open(t, NewClock().Now)); ok {
		resetHolds(t, open, func(s *subject, key string) { clearFamilies(s.T, s.store, store.Family(key)) })
	}
}

func resetHolds(t *testing.T, open Open, reset func(s *subject, key string)) {
	for name, l := range limitKinds(t) {
		t.Run(name, func(t *testing.T) {
			s, key := newSubject(t, open), "free:x="+name
			l := l.ForKey(key)
			remaining := func() bucket.Tokens {
				snaps, _ := s.take(mete.Mode{DryRun: true}, charge(key, l, 0))
				return snaps[0].Remaining()
			}
			_, kept := s.hold(minuteHold(1), mete.Mode{}, charge(key, l, 5*bucket.Token))
			_, refunded := s.hold(store.Hold{ID: holdID(2), TTL: 2 * time.Millisecond, Refund: true}, mete.Mode{}, charge(key, l, 2*bucket.Token))
			_, renewed := s.hold(store.Hold{ID: holdID(3), TTL: time.Millisecond, Refund: true}, mete.Mode{}, charge(key, l, 2*bucket.Token))
			reset(s, key)
			s.assertRemaining(key, l, 10*bucket.Token)
			_, later := s.hold(store.Hold{ID: holdID(4), TTL: time.Minute, Refund: true}, mete.Mode{}, charge(key, l, 4*bucket.Token))
			s.take(mete.Mode{}, charge(key, l, 6*bucket.Token))
			if status, err := s.holder().Renew(t.Context(), renewed, time.Minute); err != nil || status.State != store.HoldOpen {
				t.Errorf("renew after the reset: %+v, error %v", status, err)
			}
			s.assertState(s.settle(kept, bucket.Token), store.HoldSettled, true)
			s.assertRemaining(key, l, 0)
			s.assertState(s.settle(renewed, 0), store.HoldSettled, true)
			s.assertRemaining(key, l, 0)
			s.clock.Advance(2000) // refills at most 2 thousandths
			s.assertState(s.settle(refunded, 0), store.HoldExpired, false)
			if got := remaining(); got > 2 {
				t.Errorf("%v remain after the expiry of a hold, want the refill of 2 ms", got)
			}
			s.assertState(s.settle(later, 0), store.HoldSettled, true)
			if got := remaining(); got < 4*bucket.Token-10 {
				t.Errorf("%v remain after a later hold was settled, want 4", got)
			}
			reset(s, key)
			_, excess := s.hold(minuteHold(5), mete.Mode{}, charge(key, l, 4*bucket.Token))
			reset(s, key)
			s.assertState(s.settle(excess, 9*bucket.Token), store.HoldSettled, true)
			s.assertRemaining(key, l, 5*bucket.Token)
		})
	}
}

// checkResetTwins compares a bucket that was reset while it had holds with a new bucket. Both get the same random calls, and
// the old holds are settled, renewed and expire meanwhile. Each answer must be the same for both buckets.
func checkResetTwins(t *testing.T, open Open) {
	for seed := range seedsOf(12) {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			r := rand.New(testseed.PCG(seed, 14))
			w := &twins{subject: newSubject(t, open), r: r}
			for i, l := range append(randomLimits(t, r), randomCalendars(t, r)[:4]...) {
				w.limit, w.old, w.holds = l, nil, nil
				w.keys = [2]string{fmt.Sprintf("reset%d", i), fmt.Sprintf("new%d", i)}
				w.run()
			}
		})
	}
}

// twins are the two buckets of checkResetTwins.
type twins struct {
	*subject
	r      *rand.Rand
	limit  bucket.Limit
	keys   [2]string // the bucket that is reset, and the new one
	old    []twinHold
	holds  [][2]string
	number int
}

// A twinHold is a hold from before the reset.
type twinHold struct {
	id   string
	cost bucket.Tokens
}

func (w *twins) run() {
	for range 6 {
		w.pause()
		cost := bucket.Tokens(1 + w.r.Int64N(int64(w.limit.Capacity())/2+1))
		if _, id := w.hold(w.newHold(), w.newMode(), charge(w.keys[0], w.limit, cost)); id != "" {
			w.old = append(w.old, twinHold{id, cost})
		}
	}
	if err := w.store.Reset(w.Context(), w.keys[:1]); err != nil {
		w.Fatal(err)
	}
	for step := range 30 {
		if w.r.IntN(2) == 0 {
			w.pause()
		}
		w.endOld()
		if !w.sameCall() {
			w.Fatalf("the bucket that was reset differs from a new one in step %d under %v", step, w.limit)
		}
	}
}

func (w *twins) pause() {
	w.clock.Advance(w.r.Int64N(1 << (1 + w.r.IntN(22))))
}

func (w *twins) newHold() store.Hold {
	w.number++
	return store.Hold{ID: holdID(w.number), TTL: time.Duration(1000+w.r.Int64N(1<<(1+w.r.IntN(24)))) * time.Microsecond, Refund: w.r.IntN(2) == 0}
}

func (w *twins) newMode() mete.Mode {
	if w.r.IntN(3) > 0 {
		return mete.Mode{}
	}
	return mete.Mode{MaxWait: time.Duration(w.r.Int64N(20_000_000)) * time.Microsecond}
}

// endOld settles or renews a hold from before the reset.
func (w *twins) endOld() {
	if len(w.old) == 0 || w.r.IntN(3) > 0 {
		return
	}
	one := w.old[w.r.IntN(len(w.old))]
	if w.r.IntN(2) == 0 {
		w.settle(one.id, bucket.Tokens(w.r.Int64N(int64(one.cost)+1)))
	} else if _, err := w.holder().Renew(w.Context(), one.id, w.newHold().TTL); err != nil {
		w.Fatal(err)
	}
}

// sameCall makes the same call for both buckets, and reports whether the answers agree.
func (w *twins) sameCall() bool {
	cost := bucket.Tokens(w.r.Int64N(int64(w.limit.Capacity())/2 + 2))
	mode := w.newMode()
	charges := [2]store.Charge{charge(w.keys[0], w.limit, cost), charge(w.keys[1], w.limit, cost)}
	switch n := w.r.IntN(8); {
	case n < 3:
		var snaps [2][]bucket.Snapshot
		var ids [2]string
		h := w.newHold()
		for i := range charges {
			h.ID = holdID(w.number) + fmt.Sprint(i)
			snaps[i], ids[i] = w.hold(h, mode, charges[i])
		}
		if ids[0] != "" && ids[1] != "" {
			w.holds = append(w.holds, ids)
		}
		return (ids[0] == "") == (ids[1] == "") && w.sameSnaps(snaps)
	case n < 5 && len(w.holds) > 0:
		ids, actual := w.holds[w.r.IntN(len(w.holds))], bucket.Tokens(w.r.Int64N(int64(w.limit.Capacity())+1))
		a, b := w.settle(ids[0], actual), w.settle(ids[1], actual)
		if a != b {
			w.Errorf("settle %v with %v: %+v and %+v", ids, actual, a, b)
		}
		return a == b
	}
	var snaps [2][]bucket.Snapshot
	var refunds []mete.Refund
	for i := range charges {
		snaps[i], _ = w.take(mode, charges[i])
		if taken := snaps[i][0].Taken(); taken.Cost > 0 {
			refunds = append(refunds, mete.Refund{Charge: charges[i], Taken: taken})
		}
	}
	if len(refunds) == 2 && w.r.IntN(3) == 0 {
		w.pause()
		for i := range refunds {
			if err := w.store.Refund(w.Context(), refunds[i:i+1], ""); err != nil {
				w.Fatal(err)
			}
		}
	}
	return w.sameSnaps(snaps)
}

func (w *twins) sameSnaps(snaps [2][]bucket.Snapshot) bool {
	w.Helper()
	if !slices.Equal(snaps[0], snaps[1]) {
		w.Errorf("at %d: reset %s, new %s", w.clock.Now(), show(snaps[0]), show(snaps[1]))
		return false
	}
	return true
}
