// SPDX-License-Identifier: Apache-2.0

package bucket_test

import (
	"testing"
	"time"

	"github.com/metehq/mete/bucket"
)

// far is the longest wait that is exact everywhere.
const far = time.Duration(1<<52) * time.Microsecond

// used returns a bucket of l in a random state: spent, idle, in debt or behind.
func used(l bucket.Limit, r interface{ IntN(int) int }, costs func() int64, steps func(int64) int64, now int64) (bucket.State, int64) {
	var s bucket.State
	for range 1 + r.IntN(6) {
		s, _ = l.Reserve(s, bucket.Instant(now), bucket.Tokens(costs()), far)
		now = steps(now)
	}
	return s, now
}

// TestRetryAfter_IsExact is guarantee G3: the same call is denied a microsecond before the wait has passed, and
// admitted exactly then.
func TestRetryAfter_IsExact(t *testing.T) {
	r, checked, behind := random(2), 0, 0
	for range 8000 {
		l := randomLimit(r)
		costs := func() int64 { return randomCost(r, l) }
		s, now := used(l, r, costs, func(now int64) int64 { return randomStep(r, l, now) }, 1<<40)
		cost, maxWait := bucket.Tokens(randomCost(r, l)), time.Duration(randomWait(r, l))*time.Microsecond
		at := bucket.Instant(now)
		snap := l.Peek(s, at, cost, maxWait)
		if snap.Allowed || snap.RetryAfter > far {
			continue
		}
		if checked++; at < s.AsOf {
			behind++
		}
		if early := l.Peek(s, at.Add(snap.RetryAfter)-1, cost, maxWait); early.Allowed {
			t.Fatalf("%v, %+v at %d, cost %v, wait %v: admitted a microsecond before %v", l, s, at, cost, maxWait, snap.RetryAfter)
		}
		if _, then := l.Reserve(s, at.Add(snap.RetryAfter), cost, maxWait); !then.Allowed {
			t.Fatalf("%v, %+v at %d, cost %v, wait %v: denied after %v", l, s, at, cost, maxWait, snap.RetryAfter)
		}
	}
	if checked < 800 || behind < 40 {
		t.Errorf("%d waits checked, %d of them behind the bucket: too few", checked, behind)
	}
}

// TestNever_IsNever: if the wait is never, even a full bucket denies. Otherwise the cost has a wait or is admitted.
func TestNever_IsNever(t *testing.T) {
	r := random(3)
	for range 8000 {
		l := randomLimit(r)
		s, now := used(l, r, func() int64 { return randomCost(r, l) }, func(now int64) int64 { return randomStep(r, l, now) }, 1<<40)
		cost, maxWait := bucket.Tokens(randomCost(r, l)), time.Duration(randomWait(r, l))*time.Microsecond
		got := l.Peek(s, bucket.Instant(now), cost, maxWait).RetryAfter == bucket.Never
		full := l.Peek(bucket.State{}, 0, cost, maxWait)
		if got == full.Allowed {
			t.Fatalf("%v, %+v at %d, cost %v, wait %v: never %v, but a full bucket allows %v", l, s, now, cost, maxWait, got, full.Allowed)
		}
		if !full.Allowed && full.RetryAfter != bucket.Never {
			t.Fatalf("%v: a full bucket says to wait %v for %v", l, full.RetryAfter, cost)
		}
	}
}

// TestFullAfter_IsExact: the bucket is full exactly then, and evicting it changes nothing.
func TestFullAfter_IsExact(t *testing.T) {
	r, checked := random(4), 0
	for range 8000 {
		l := randomLimit(r)
		s, now := used(l, r, func() int64 { return randomCost(r, l) }, func(now int64) int64 { return randomStep(r, l, now) }, 1<<40)
		at := bucket.Instant(now)
		after := l.Peek(s, at, 0, 0).FullAfter()
		if after == 0 || after > far {
			continue
		}
		checked++
		full := at.Add(after)
		if l.Full(s, full-1) || l.Peek(s, full-1, 0, 0).FullAfter() == 0 {
			t.Fatalf("%v, %+v at %d: full a microsecond before %v", l, s, now, after)
		}
		if !l.Full(s, full) {
			t.Fatalf("%v, %+v at %d: not full after %v", l, s, now, after)
		}
		cost := bucket.Tokens(randomCost(r, l))
		if kept, forgotten := l.Peek(s, full, cost, 0), l.Peek(bucket.State{}, full, cost, 0); kept != forgotten {
			t.Fatalf("%v, %+v, cost %v when full: kept %+v, forgotten %+v", l, s, cost, kept, forgotten)
		}
	}
	if checked < 800 {
		t.Errorf("%d waits checked: too few", checked)
	}
}

// TestWait_IsExact: an admitted reservation has no debt after its wait, and some a microsecond earlier.
func TestWait_IsExact(t *testing.T) {
	r, checked := random(5), 0
	for range 8000 {
		l := randomLimit(r)
		s, now := used(l, r, func() int64 { return randomCost(r, l) }, func(now int64) int64 { return randomStep(r, l, now) }, 1<<40)
		at := bucket.Instant(now)
		s, snap := l.Reserve(s, at, bucket.Tokens(randomCost(r, l)), far)
		wait := snap.Wait()
		if !snap.Allowed || wait == 0 || wait > far {
			continue
		}
		checked++
		if l.Peek(s, at.Add(wait)-1, 0, 0).Allowed || !l.Peek(s, at.Add(wait), 0, 0).Allowed {
			t.Fatalf("%v, %+v at %d: the debt is not paid after exactly %v", l, s, now, wait)
		}
	}
	if checked < 800 {
		t.Errorf("%d waits checked: too few", checked)
	}
}

// TestTakeAll_WaitsForTheLongest: the wait of a request is the longest one of the denying buckets, and a denial
// charges none.
func TestTakeAll_WaitsForTheLongest(t *testing.T) {
	r, checked := random(6), 0
	for range 8000 {
		states, charges := make([]bucket.State, 1+r.IntN(4)), []bucket.Charge(nil)
		now := int64(1 << 40)
		for i := range states {
			l := randomLimit(r)
			states[i], _ = used(l, r, func() int64 { return randomCost(r, l) }, func(now int64) int64 { return randomStep(r, l, now) }, now)
			charges = append(charges, bucket.Charge{Limit: l, Cost: bucket.Tokens(upTo(r, int64(l.Capacity())))})
		}
		maxWait := time.Duration(upTo(r, 1e9)*int64(r.IntN(2))) * time.Microsecond
		before := append([]bucket.State(nil), states...)
		snaps, ok := bucket.TakeAll(nil, states, charges, bucket.Instant(now), maxWait)
		longest := time.Duration(0)
		for i, s := range snaps {
			longest = max(longest, s.RetryAfter)
			if !ok && states[i] != before[i] {
				t.Fatalf("denied, but bucket %d went from %+v to %+v", i, before[i], states[i])
			}
			if ok && !s.Allowed || s.Allowed != (s.RetryAfter == 0) {
				t.Fatalf("all allowed %v, bucket %d: %+v", ok, i, s)
			}
		}
		if ok || longest > far {
			continue
		}
		checked++
		then := bucket.Instant(now).Add(longest)
		if _, early := bucket.TakeAll(nil, states, charges, then-1, maxWait); early {
			t.Fatalf("%+v of %+v at %d: admitted a microsecond before %v", charges, before, now, longest)
		}
		if _, late := bucket.TakeAll(nil, states, charges, then, maxWait); !late {
			t.Fatalf("%+v of %+v at %d: denied after %v", charges, before, now, longest)
		}
	}
	if checked < 400 {
		t.Errorf("%d waits checked: too few", checked)
	}
}
