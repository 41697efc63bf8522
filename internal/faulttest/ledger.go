// SPDX-License-Identifier: Apache-2.0

package faulttest

import (
	"cmp"
	"errors"
	"math"
	"slices"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/store"
)

// Events returns the admitted takes of a bucket in the order of their answers, and the number of takes that
// may have been admitted.
func (tr *Traffic) Events(key string) (admitted []Call, maybe int64) {
	for _, k := range tr.Takers {
		if !slices.ContainsFunc(k.Charges, func(c store.Charge) bool { return c.Key == key }) {
			continue
		}
		for _, c := range k.Calls {
			switch {
			case c.allowed:
				admitted = append(admitted, c)
			case !k.IDs && c.Err != nil && mete.Spent(c.Err) == mete.MaybeSpent,
				c.Err == nil && c.doubt: // finally denied by another bucket
				maybe++
			}
		}
	}
	slices.SortFunc(admitted, func(a, b Call) int { return a.Ended.Compare(b.Ended) })
	return admitted, maybe
}

func primingCost(l bucket.Limit) bucket.Tokens { return l.Capacity() / 10 * 9 }

// CheckBound fails the test if a bucket admitted more than its limit allows in any interval, according to the
// callers. A take happened between its start and its end. The bound grows by the given number of capacities.
func (tr *Traffic) CheckBound(forgiven int64) {
	tr.t.Helper()
	for _, b := range tr.buckets() {
		n, p := b.Limit.Refill()
		admitted, _ := tr.Events(b.Key)
		if len(admitted) == 0 {
			tr.t.Errorf("bucket %q admitted nothing: the run means nothing", b.Key)
		}
		admitted = append([]Call{tr.primes[b.Key]}, admitted...)
		for _, from := range admitted {
			spent := int64(0)
			for i, c := range admitted {
				if c.first.Before(from.first) {
					continue
				}
				if spent += int64(b.Cost); i == 0 {
					spent = int64(primingCost(b.Limit))
				}
				us := c.Ended.Sub(from.first).Microseconds() + 1
				if bound := (1+forgiven)*int64(b.Limit.Capacity()) + us*int64(n)/p; spent > bound {
					tr.t.Errorf("bucket %q admitted %d thousandths in %d µs, more than %d", b.Key, spent, us, bound)
					return
				}
			}
		}
	}
}

// CheckConserved compares the missing tokens of every bucket with the admitted ones. They must be equal to the
// last unit, except for takes that may have been admitted. It ignores buckets without a first take.
func (tr *Traffic) CheckConserved() {
	tr.t.Helper()
	for _, b := range tr.buckets() {
		before, known := tr.states[b.Key]
		if !known {
			continue
		}
		n, p := b.Limit.Refill()
		admitted, maybe := tr.Events(b.Key)
		after := tr.place.State(b.Key)
		want := before.Spent + int64(len(admitted))*int64(bucket.Token)*p - int64(after.AsOf-before.AsOf)*int64(n)
		most := want + maybe*int64(bucket.Token)*p
		if tr.place.Parts {
			most += tr.countUndone(b.Key) * int64(n) * int64(after.AsOf-before.AsOf)
		}
		if tr.place.Unsure != nil && tr.place.Unsure(b.Key) {
			most = math.MaxInt64
		}
		if after.Spent < want || after.Spent > most {
			tr.t.Errorf("bucket %q: %d units are missing, want %d to %d: %d takes were admitted and %d may have been",
				b.Key, after.Spent, want, most, len(admitted), maybe)
		}
	}
}

// countUndone returns the maximum number of undone takes of a bucket.
func (tr *Traffic) countUndone(key string) (times int64) {
	const attempts = 10 // of a call with an ID
	for _, k := range tr.Takers {
		if len(k.Charges) > 1 && slices.ContainsFunc(k.Charges, func(c store.Charge) bool { return c.Key == key }) {
			times += attempts * int64(len(k.Calls))
		}
	}
	return times
}

// CheckPrompt fails the test unless 99% of the answers came in time. Stalls of the machine do not count. If they
// are frequent, the time limit is longer.
func (tr *Traffic) CheckPrompt() {
	tr.t.Helper()
	var took []time.Duration
	for _, k := range tr.Takers {
		for _, c := range k.Calls {
			took = append(took, c.Ended.Sub(c.Began)-(c.Within-Within)-stalledTime(tr.stalls, c.Began, c.Ended))
		}
	}
	slices.SortFunc(took, cmp.Compare)
	share := tr.stalledShare()
	most := time.Duration(float64(Within+tr.place.Slack) / (1 - share))
	if p99 := took[len(took)*99/100]; p99 > most {
		tr.t.Errorf("of %d calls, one in a hundred took %v or more, want %v at most, where stalls were %.2f of the time", len(took), p99, most, share)
	}
}

// stalledShare returns the share of stalls in the time of all calls. It is bounded, so that callers that wait
// for the timeout of a store never pass as prompt.
func (tr *Traffic) stalledShare() float64 {
	const most = 0.7
	var began, ended time.Time
	for _, k := range tr.Takers {
		for _, c := range k.Calls {
			if began.IsZero() || c.Began.Before(began) {
				began = c.Began
			}
			if c.Ended.After(ended) {
				ended = c.Ended
			}
		}
	}
	return min(float64(stalledTime(tr.stalls, began, ended))/float64(max(ended.Sub(began), 1)), most)
}

// Failures counts the failed calls by their effect. Every error must specify the effect.
func (tr *Traffic) Failures() (notSpent, maybeSpent int, example error) {
	tr.t.Helper()
	for _, k := range tr.Takers {
		for _, c := range k.Calls {
			if c.Err == nil {
				continue
			}
			var e *mete.StoreError
			if !errors.As(c.Err, &e) || e.Op != "take" || e.Store != tr.place.Name {
				tr.t.Errorf("error %q is no *mete.StoreError of a take", c.Err)
			}
			if example = c.Err; mete.Spent(c.Err) == mete.NotSpent {
				notSpent++
			} else {
				maybeSpent++
			}
		}
	}
	return notSpent, maybeSpent, example
}

// CheckNoFailures fails the test if a call failed.
func (tr *Traffic) CheckNoFailures() {
	tr.t.Helper()
	if not, maybe, example := tr.Failures(); not+maybe > 0 {
		tr.t.Errorf("%d calls failed, such as with %v; want none", not+maybe, example)
	}
}

// CheckFailures fails the test if no call failed, because then there was no fault.
func (tr *Traffic) CheckFailures() {
	tr.t.Helper()
	not, maybe, example := tr.Failures()
	if not+maybe == 0 {
		tr.t.Error("no call failed: the fault came to nothing")
	}
	tr.t.Logf("failed: %d not spent, %d maybe spent, such as %v", not, maybe, example)
}
