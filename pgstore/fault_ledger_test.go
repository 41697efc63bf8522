// SPDX-License-Identifier: Apache-2.0

package pgstore_test

import (
	"cmp"
	"errors"
	"slices"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
)

// events are the takes of a bucket that were admitted, in the order of their
// answers, and how many others may have been.
func (tr *traffic) events(key string) (admitted []call, maybe int64) {
	for _, k := range tr.takers {
		if !slices.ContainsFunc(k.charges, func(c mete.Charge) bool { return c.Key == key }) {
			continue
		}
		for _, c := range k.calls {
			switch {
			case c.allowed:
				admitted = append(admitted, c)
			case !k.ids && c.err != nil && mete.Spent(c.err) == mete.MaybeSpent,
				c.err == nil && c.doubt: // denied at last, when another bucket was empty
				maybe++
			}
		}
	}
	slices.SortFunc(admitted, func(a, b call) int { return a.ended.Compare(b.ended) })
	return admitted, maybe
}

// bounded sees to it that no bucket admitted more than it may in any interval,
// from what callers know: a take happened between its beginning and its end. So
// many capacities are forgiven.
func (tr *traffic) bounded(forgiven int64) {
	tr.t.Helper()
	for _, b := range tr.buckets() {
		n, p := b.Limit.Refill()
		admitted, _ := tr.events(b.Key)
		if len(admitted) == 0 {
			tr.t.Errorf("bucket %q admitted nothing: the run means nothing", b.Key)
		}
		admitted = append([]call{tr.primes[b.Key]}, admitted...)
		for _, from := range admitted {
			spent := int64(0)
			for i, c := range admitted {
				if c.first.Before(from.first) {
					continue
				}
				if spent += int64(b.Cost); i == 0 {
					spent = int64(primed(b.Limit))
				}
				us := c.ended.Sub(from.first).Microseconds() + 1
				if bound := (1+forgiven)*int64(b.Limit.Capacity()) + us*int64(n)/p; spent > bound {
					tr.t.Errorf("bucket %q admitted %d thousandths in %d µs, more than %d", b.Key, spent, us, bound)
					return
				}
			}
		}
	}
}

// conserved compares what is missing from every bucket with what was admitted:
// they are the same, to the last unit, but for takes that may have been. Buckets that
// were not there when the traffic began are left out.
func (tr *traffic) conserved() {
	tr.t.Helper()
	for _, b := range tr.buckets() {
		before, known := tr.states[b.Key]
		if !known {
			continue
		}
		n, p := b.Limit.Refill()
		admitted, maybe := tr.events(b.Key)
		after := tr.state(b.Key)
		want := before.Spent + int64(len(admitted))*int64(bucket.Token)*p - int64(after.AsOf-before.AsOf)*int64(n)
		most := want + maybe*int64(bucket.Token)*p
		if after.Spent < want || after.Spent > most {
			tr.t.Errorf("bucket %q: %d units are missing, want %d to %d: %d takes were admitted and %d may have been",
				b.Key, after.Spent, want, most, len(admitted), maybe)
		}
	}
}

// prompt sees to it that callers had their answers in time: 99 in a hundred, as
// the machine does other things too.
func (tr *traffic) prompt() {
	tr.t.Helper()
	var took []time.Duration
	for _, k := range tr.takers {
		for _, c := range k.calls {
			took = append(took, c.ended.Sub(c.began))
		}
	}
	slices.SortFunc(took, cmp.Compare)
	if p99 := took[len(took)*99/100]; p99 > within+slack {
		tr.t.Errorf("of %d calls, one in a hundred took %v or more, want %v at most", len(took), p99, within+slack)
	}
}

// failures are the calls that failed, by what may have been spent. Every error
// must say that.
func (tr *traffic) failures() (notSpent, maybeSpent int, example error) {
	tr.t.Helper()
	for _, k := range tr.takers {
		for _, c := range k.calls {
			if c.err == nil {
				continue
			}
			var e *mete.StoreError
			if !errors.As(c.err, &e) || e.Op != "take" || e.Store != "pgstore" {
				tr.t.Errorf("error %q is no *mete.StoreError of a take", c.err)
			}
			if example = c.err; mete.Spent(c.err) == mete.NotSpent {
				notSpent++
			} else {
				maybeSpent++
			}
		}
	}
	return notSpent, maybeSpent, example
}

// harmed sees to it that some did: else the fault was none.
func (tr *traffic) harmed() {
	tr.t.Helper()
	not, maybe, example := tr.failures()
	if not+maybe == 0 {
		tr.t.Error("no call failed: the fault came to nothing")
	}
	tr.t.Logf("failed: %d not spent, %d maybe spent, such as %v", not, maybe, example)
}
