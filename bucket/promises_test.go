// SPDX-License-Identifier: Apache-2.0

package bucket_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/metehq/mete/bucket"
)

// wornOf returns a limit of this kind, and a bucket of it with a random history.
func wornOf(r *rand.Rand, kind bucket.Spec) (o *oracleLimit, s bucket.State, now int64) {
	o, now = randomOf(r, kind), upTo(r, 1<<50)
	for range 1 + r.IntN(8) {
		if r.IntN(5) == 0 {
			s = o.limit.Refund(s, bucket.Instant(now), bucket.Tokens(price(r, o)))
		} else {
			s, _ = o.limit.Reserve(s, bucket.Instant(now), bucket.Tokens(price(r, o)), waitOf(patience(r, o)))
		}
		now = min(walk(r, o, now), 1<<51)
	}
	if r.IntN(2) == 0 { // and then was emptied
		cost := o.limit.Peek(s, bucket.Instant(now), 0, 0).Remaining() + bucket.Tokens(upTo(r, int64(o.limit.Capacity())))
		s, _ = o.limit.Reserve(s, bucket.Instant(now), cost, bucket.Forced)
		now += upTo(r, o.limit.TimeFor(o.limit.Capacity()/2+1).Microseconds())
	}
	return o, s, min(now, 1<<51)
}

// TestEveryRetryAfter_IsExact is guarantee G3: the same call is denied a microsecond before its wait has
// passed, and admitted exactly then. If the wait is never, even a full bucket denies.
func TestEveryRetryAfter_IsExact(t *testing.T) {
	eachKind(t, func(t *testing.T, r *rand.Rand, kind bucket.Spec) {
		checked, never := 0, 0
		for range 6000 {
			o, s, now := wornOf(r, kind)
			l, at, cost, wait := o.limit, bucket.Instant(now), bucket.Tokens(price(r, o)), waitOf(patience(r, o))
			snap := l.Peek(s, at, cost, wait)
			full := l.Peek(bucket.State{}, at, cost, wait)
			if (snap.RetryAfter == bucket.Never) == full.Allowed {
				t.Fatalf("%v, %+v at %d, cost %v, wait %v: never %v, but a full bucket allows %v",
					l, s, at, cost, wait, snap.RetryAfter == bucket.Never, full.Allowed)
			}
			switch {
			case snap.RetryAfter == bucket.Never:
				never++
			case !snap.Allowed && snap.RetryAfter < far:
				checked++
				if l.Peek(s, at.Add(snap.RetryAfter)-1, cost, wait).Allowed {
					t.Fatalf("%v, %+v at %d, cost %v, wait %v: admitted a microsecond before %v", l, s, at, cost, wait, snap.RetryAfter)
				}
				if _, then := l.Reserve(s, at.Add(snap.RetryAfter), cost, wait); !then.Allowed {
					t.Fatalf("%v, %+v at %d, cost %v, wait %v: denied after %v", l, s, at, cost, wait, snap.RetryAfter)
				}
			}
		}
		if checked < 300 || never < 300 {
			t.Errorf("%d waits checked, and %d of never: too few", checked, never)
		}
	})
}

// TestEveryFullBucket_MayBeForgotten is guarantee G5: a bucket is full exactly after FullAfter, and evicting it
// from then on changes nothing.
func TestEveryFullBucket_MayBeForgotten(t *testing.T) {
	eachKind(t, func(t *testing.T, r *rand.Rand, kind bucket.Spec) {
		checked := 0
		for range 3000 {
			o, s, now := wornOf(r, kind)
			l, at := o.limit, bucket.Instant(now)
			after := l.Peek(s, at, 0, 0).FullAfter()
			if after > far {
				continue
			}
			if after > 0 {
				checked++
			}
			then := max(at.Add(after), s.AsOf)
			if !l.Full(s, then) || after > 0 && l.Full(s, at.Add(after)-1) {
				t.Fatalf("%v, %+v at %d: not full exactly after %v", l, s, now, after)
			}
			if l.ForKey("another key").Full(s, at.Add(after)-1) && after > 0 {
				t.Fatalf("%v, %+v at %d: full before %v with another key's intervals", l, s, now, after)
			}
			forgotten := bucket.State{}
			for range 4 {
				cost, wait := bucket.Tokens(price(r, o)), waitOf(patience(r, o))
				var a, b bucket.Snapshot
				s, a = l.Reserve(s, then, cost, wait)
				if forgotten, b = l.Reserve(forgotten, then, cost, wait); answerOf(a) != answerOf(b) {
					t.Fatalf("%v, full at %d, cost %v, wait %v: kept %+v, forgotten %+v", l, then, cost, wait, answerOf(a), answerOf(b))
				}
				then = max(bucket.Instant(min(walk(r, o, int64(then)), 1<<52)), then)
			}
		}
		if checked < 200 {
			t.Errorf("%d buckets checked: too few", checked)
		}
	})
}

// TestEveryWait_IsExact: delayed work may start exactly after its wait, when its bucket has no debt, and not a
// microsecond earlier.
func TestEveryWait_IsExact(t *testing.T) {
	eachKind(t, func(t *testing.T, r *rand.Rand, kind bucket.Spec) {
		if kind.Algorithm == bucket.AlgorithmSlidingLog {
			return // the wait until the log is empty
		}
		checked := 0
		for range 4000 {
			o, s, now := wornOf(r, kind)
			l, at := o.limit, bucket.Instant(now)
			cost := l.Peek(s, at, 0, 0).Remaining() + bucket.Tokens(upTo(r, int64(l.MaxReserved())))
			s, snap := l.Reserve(s, at, cost, bucket.Forced)
			wait := snap.Wait()
			if !snap.Allowed || wait == 0 || wait > far {
				continue
			}
			checked++
			if l.Peek(s, at.Add(wait)-1, 0, -1).Allowed || !l.Peek(s, at.Add(wait), 0, -1).Allowed {
				t.Fatalf("%v, %+v at %d: the debt is not paid after exactly %v", l, s, now, wait)
			}
		}
		if checked < 100 {
			t.Errorf("%d waits checked: too few", checked)
		}
	})
}

// TestEveryWayToAsk_AgreesWithTheOthers: Peek, Reserve, Spend and SpendOn decide alike. The ones that return a
// state do not change the old one.
func TestEveryWayToAsk_AgreesWithTheOthers(t *testing.T) {
	eachKind(t, func(t *testing.T, r *rand.Rand, kind bucket.Spec) {
		for range 3000 {
			o, s, now := wornOf(r, kind)
			l, at, cost, wait := o.limit, bucket.Instant(now), bucket.Tokens(price(r, o)), waitOf(patience(r, o))
			before, mine := copyOf(s), copyOf(s)
			peek := l.Peek(s, at, cost, wait)
			reserved, snap := l.Reserve(s, at, cost, wait)
			spent, v := l.Spend(s, at, cost, wait)
			onto := l.SpendOn(&mine, at, cost, wait)
			var shown bucket.Snapshot
			v.Show(&shown, &l, cost, at)
			if peek.RetryAfter != snap.RetryAfter ||
				shown != snap || v != onto || briefOf(snap) != v || v.Allowed() != snap.Allowed || peek.Allowed != snap.Allowed {
				t.Fatalf("%v, %+v at %d, cost %v, wait %v: peek %+v, reserve %+v, spend %+v, in place %+v", l, s, now, cost, wait, peek, snap, v, onto)
			}
			if !alike(reserved, spent) || !alike(spent, mine) {
				t.Fatalf("%v, %+v at %d, cost %v, wait %v: %+v, %+v and in place %+v", l, before, now, cost, wait, reserved, spent, mine)
			}
			refunded := l.Refund(spent, at, cost)
			if l.RefundOn(&mine, at, cost); !alike(refunded, mine) {
				t.Fatalf("%v, %+v at %d, refund of %v: %+v, in place %+v", l, spent, now, cost, refunded, mine)
			}
			l.SpendOn(&mine, at+1, 1, wait) // what is changed in place from here on
			if !alike(s, before) || !alike(reserved, spent) {
				t.Fatalf("%v: the state changed from %+v %v to %+v %v", l, before, before.Log.Entries(), s, s.Log.Entries())
			}
		}
	})
}

// copyOf returns a deep copy of s.
func copyOf(s bucket.State) bucket.State {
	if s.Log != nil {
		s.Log = bucket.NewLog(slices.Clone(s.Log.Entries()))
	}
	return s
}

func alike(a, b bucket.State) bool {
	same := slices.Equal(a.Log.Entries(), b.Log.Entries()) && (a.Log == nil) == (b.Log == nil)
	a.Log, b.Log = nil, nil
	return same && a == b
}

// TestUpTo_TakesWhatIsThere: the computed part of a cost is admitted if there is at least one token or the
// whole cost.
func TestUpTo_TakesWhatIsThere(t *testing.T) {
	eachKind(t, func(t *testing.T, r *rand.Rand, kind bucket.Spec) {
		for range 2000 {
			o, s, now := wornOf(r, kind)
			l, at, cost := o.limit, bucket.Instant(now), bucket.Tokens(1+upTo(r, 1<<41))
			there := l.Peek(s, at, 0, 0).Remaining()
			part := bucket.UpTo(cost, there)
			// A negative wait excludes the queue.
			if got, want := l.Peek(s, at, part, -1).Allowed, there >= min(bucket.Token, cost); got != want {
				t.Fatalf("%v, %+v at %d: %v of %v with %v there: allowed %v, want %v", l, s, now, part, cost, there, got, want)
			}
			if part > cost || there >= bucket.Token && part != cost && (part%bucket.Token != 0 || there-part >= bucket.Token) {
				t.Fatalf("UpTo(%v, %v) = %v", cost, there, part)
			}
		}
	})
	for _, tt := range []struct{ cost, there, want bucket.Tokens }{
		{5000, 3200, 3000}, {5000, 0, 1000}, {400, 0, 400}, {400, 900, 400}, {2500, 2700, 2500}, {2500, 2400, 2000}, {0, 0, 0},
	} {
		if got := bucket.UpTo(tt.cost, tt.there); got != tt.want {
			t.Errorf("UpTo(%v, %v) = %v, want %v", tt.cost, tt.there, got, tt.want)
		}
	}
}

func briefOf(s bucket.Snapshot) bucket.Verdict {
	v, _ := s.Verdict()
	return v
}
