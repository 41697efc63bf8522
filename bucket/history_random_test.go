// SPDX-License-Identifier: Apache-2.0

package bucket_test

import (
	"fmt"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/metehq/mete/bucket"
)

// A historyRun plays takes, holds, awaits, settlements and cancellations on a bucket and on its oracles. The bucket decides which takes
// are admitted.
type historyRun struct {
	t     *testing.T
	l     *oracleLimit
	state bucket.State
	now   int64
	lasts int64         // each hold and await; 0 is a random time
	ideal *oraclePath   // returns the exact amounts
	real  *oraclePath   // returns what the bucket returns
	kept  *oracleEpochs // returns what its epochs allow, if lasts is not 0
	takes []historyTake
	open  []int // takes that can be canceled
	log   string

	forces bool // some takes are forced, and may leave a debt
}

type historyTake struct {
	at, cost int64
	canceled int64
	taken    bucket.Taken
	since    int // of the paths
}

func newHistoryRun(t *testing.T, l *oracleLimit, lasts int64) *historyRun {
	h := &historyRun{t: t, l: l, now: 1_000_000_000, lasts: lasts, ideal: newPath(l), real: newPath(l)}
	h.kept = &oracleEpochs{path: newPath(l), lasts: lasts}
	return h
}

// take asks for a cost, and keeps a history for it half of the time.
func (h *historyRun) take(r *rand.Rand) {
	l, cost := h.l.limit, 1+share(r, int64(h.l.limit.Capacity())-1)
	forced, wait := h.forces && r.IntN(4) == 0, time.Duration(0)
	if forced {
		wait = bucket.Forced
	}
	after, snap := l.Reserve(h.state, bucket.Instant(h.now), bucket.Tokens(cost), wait)
	if h.state = after; !snap.Allowed {
		return
	}
	taken, lasts := snap.Taken(), h.lasts
	if lasts == 0 {
		lasts = 1 + share(r, 4*h.l.refillTime())
	}
	made := historyTake{at: int64(taken.At), cost: cost, taken: taken, since: h.ideal.take(h.now, cost)}
	h.real.take(h.now, cost)
	kind := r.IntN(4)
	if forced {
		kind = 4
	}
	row, ttl := bucket.Row{{Limit: l, State: h.state}}, time.Duration(lasts)*time.Microsecond
	switch kind {
	case 0:
		row, made.taken = row.WithHold(&l, taken.At, withID(taken, len(h.takes)), taken.At.Add(ttl), false)
	case 1:
		row = row.WithAwait(&l, taken.At, taken, ttl)
	}
	if kind < 2 {
		h.state = row[0].State
	}
	// The first take from a full bucket that awaits its settlement needs no history, nor does a stepped limit.
	full := !h.kept.active(h.now) && h.ideal.minima[made.since-1].Sign() == 0 && h.real.minima[made.since-1].Sign() == 0
	h.kept.take(h.now, cost, kind == 0 || kind == 1 && !full && l.Algorithm() == bucket.AlgorithmContinuous)
	h.log += fmt.Sprintf("at %d take %d, kind %d for %v\n", h.now, cost, kind, ttl)
	if !forced { // it is finished work
		h.open = append(h.open, len(h.takes))
	}
	h.takes = append(h.takes, made)
}

// withID returns the take with the ID of a new history.
func withID(taken bucket.Taken, id int) bucket.Taken {
	taken.History = int64(id) + 1
	return taken
}

// cancel cancels all or a part of an open take, and compares the returned amount with the rule.
func (h *historyRun) cancel(r *rand.Rand) {
	at := r.IntN(len(h.open))
	c := &h.takes[h.open[at]]
	h.open = slices.Delete(h.open, at, at+1)
	c.canceled = c.cost
	if r.IntN(2) == 0 {
		c.canceled = 1 + share(r, c.cost-1)
	}
	before, row := h.missing(), bucket.Row{{Limit: h.l.limit, State: h.state}}
	gone := c.taken.History != 0 && !row.HasHistory(&h.l.limit, c.taken) // the hold returns nothing
	if known := h.state.History; before.Cmp(big.NewRat(int64(h.l.limit.Capacity()), 1)) > 0 {
		gone = gone || known == nil || known.Epochs[0].Start > c.taken.At // the debt may be of work that waits
	}
	h.state = h.l.limit.Cancel(h.state, bucket.Instant(h.now), bucket.Tokens(c.canceled), c.taken)
	back := new(big.Rat).Sub(before, h.missing())
	h.log += fmt.Sprintf("at %d cancel %d of the take at %d: %v\n", h.now, c.canceled, c.at, back)

	amount := big.NewRat(c.canceled, 1)
	if most := h.real.exact(h.now, amount, c.since); back.Cmp(most) > 0 {
		h.fail("returned %v, more than the exact %v", back, most)
	}
	own := new(big.Rat).Sub(big.NewRat(c.cost, 1), h.l.refilled(c.at, h.real.asOf))
	if least := least(amount, positive(own)); back.Cmp(least) < 0 && !gone {
		h.fail("returned %v, less than the unrefilled part %v", back, least)
	}
	if h.lasts != 0 {
		if want := h.kept.cancel(h.now, amount, c.cost, c.at); back.Cmp(want) != 0 && !gone {
			h.fail("returned %v, by the epochs %v", back, want)
		}
	}
	h.real.cancel(h.now, back, back, c.since)
	h.ideal.cancel(h.now, amount, h.ideal.exact(h.now, amount, c.since), c.since)

	// The exact amounts are the difference to the world in which the canceled amounts were never taken.
	without := newPath(h.l)
	for _, c := range h.takes {
		without.take(c.at, c.cost-c.canceled)
	}
	if without.advance(h.now); h.ideal.missing.Cmp(without.missing) != 0 {
		h.fail("the oracle misses %v, without the canceled takes %v", h.ideal.missing, without.missing)
	}
}

// check compares the bucket with the oracles. One of them is the world without the canceled amounts.
func (h *historyRun) check() {
	h.ideal.advance(h.now)
	h.real.advance(h.now)
	got := h.missing()
	switch {
	case got.Cmp(h.ideal.missing) < 0:
		h.fail("misses %v, without the canceled takes %v", got, h.ideal.missing)
	case got.Cmp(h.real.missing) != 0:
		h.fail("misses %v, by its oracle %v", got, h.real.missing)
	}
}

// missing returns the missing amount of the bucket, in thousandths.
func (h *historyRun) missing() *big.Rat {
	return big.NewRat(missingOf(h.l.limit, h.state, h.now), h.l.limit.Unit())
}

func (h *historyRun) fail(format string, args ...any) {
	h.t.Helper()
	h.t.Fatalf("%v at %d %s, after\n%s", h.l.limit, h.now, fmt.Sprintf(format, args...), h.log)
}

// step moves the clock. If all holds and awaits last the same time, no take is canceled later than that.
func (h *historyRun) step(r *rand.Rand) {
	if r.IntN(4) > 0 {
		h.now += share(r, h.l.refillTime()/2)
	}
	h.open = slices.DeleteFunc(h.open, func(i int) bool { // its epoch may have ended
		return h.lasts != 0 && h.now >= h.takes[i].at+h.lasts
	})
}

// refillTime returns the time until an empty bucket is full, at most a year.
func (l *oracleLimit) refillTime() int64 {
	return min(l.limit.TimeFor(l.limit.Capacity()).Microseconds(), 1<<45)
}

// share returns a random number from 0 to most: any, or of any size, or one that fits many times.
func share(r *rand.Rand, most int64) int64 {
	switch r.IntN(4) {
	case 0:
		return r.Int64N(most + 1)
	case 1:
		return upTo(r, most)
	}
	return r.Int64N(most/12 + 1)
}

// historyLimit returns a small limit, or one of any size.
func historyLimit(r *rand.Rand) *oracleLimit {
	if r.IntN(2) == 0 {
		return oracleOf(twoWorldLimit(r))
	}
	none := bucket.Tokens(0)
	for {
		spec := bucket.Spec{
			Algorithm: []bucket.Algorithm{bucket.AlgorithmContinuous, bucket.AlgorithmStepped}[r.IntN(2)],
			Capacity:  bucket.Tokens(1 + upTo(r, 1<<40)), MaxReserved: &none,
			Rate: bucket.Rate{Tokens: bucket.Tokens(1 + upTo(r, 1<<30)), Per: randomPer(r, 1<<40)},
		}
		if l, _, err := spec.Compile(); err == nil {
			return oracleOf(l)
		}
	}
}

// TestHistory_AgreesWithTheOracle cancels holds, awaits and plain takes, in whole or in part, in any order and at any time. Each
// cancellation returns at most the exact amount and at least the unrefilled part of the cost. If all holds and awaits last the
// same time, it returns what their epochs allow. The bucket is never fuller than without the canceled amounts.
func TestHistory_AgreesWithTheOracle(t *testing.T) {
	limits := 30_000
	if testing.Short() {
		limits = 500
	}
	r := random(148)
	for i := range limits {
		l, lasts := historyLimit(r), int64(0)
		if i%2 == 0 {
			lasts = 1 + share(r, 4*l.refillTime())
		}
		h := newHistoryRun(t, l, lasts)
		for range 3 + r.IntN(40) {
			h.step(r)
			if len(h.open) > 0 && r.IntN(3) == 0 {
				h.cancel(r)
			} else {
				h.take(r)
			}
			h.check()
		}
	}
}

// TestHistory_ForcedDebt cancels takes of buckets in debt by forced costs, which wait for nothing. A take that the history covers
// returns at least its unrefilled part, as without a debt. The bucket is never fuller than without the canceled amounts.
func TestHistory_ForcedDebt(t *testing.T) {
	limits := 30_000
	if testing.Short() {
		limits = 500
	}
	r := random(150)
	for range limits {
		h := newHistoryRun(t, oracleOf(debtLimit(r)), 0)
		h.forces = true
		for range 3 + r.IntN(40) {
			h.step(r)
			if len(h.open) > 0 && r.IntN(3) == 0 {
				h.cancel(r)
			} else {
				h.take(r)
			}
			h.check()
		}
	}
}

func debtLimit(r *rand.Rand) bucket.Limit {
	for {
		most := bucket.Tokens(1 << 41)
		spec := bucket.Spec{
			Algorithm: []bucket.Algorithm{bucket.AlgorithmContinuous, bucket.AlgorithmStepped}[r.IntN(2)],
			Capacity:  bucket.Tokens(1 + upTo(r, 1<<30)), MaxReserved: &most,
			Rate: bucket.Rate{Tokens: bucket.Tokens(1 + upTo(r, 1<<20)), Per: randomPer(r, 1<<30)},
		}
		if l, _, err := spec.Compile(); err == nil {
			return l
		}
	}
}
