// SPDX-License-Identifier: Apache-2.0

package bucket_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/metehq/mete/bucket"
)

// lapse returns a random duration in microseconds, near the points where the limit and the answer change.
func lapse(r *rand.Rand, o *oracleLimit, s bucket.Snapshot) int64 {
	_, p := o.limit.Refill()
	switch r.IntN(8) {
	case 0:
		return upTo(r, 1<<48)
	case 1:
		return upTo(r, 3*p)
	case 2:
		return max(min(s.FullAfter().Microseconds(), 1<<50)-int64(r.IntN(2)), 0)
	case 3, 4:
		return max(min(s.RetryAfter.Microseconds(), 1<<50)-int64(r.IntN(2)), 0)
	}
	return upTo(r, min(s.RetryAfter.Microseconds(), 1<<50))
}

// sameLater compares Later of a peek at s with a later peek.
func sameLater(t *testing.T, o *oracleLimit, s bucket.State, now, cost, wait, later int64) {
	t.Helper()
	l := o.limit
	then := bucket.Instant(now + later)
	seen := l.Peek(s, bucket.Instant(now), bucket.Tokens(cost), waitOf(wait))
	got := seen.After(time.Duration(later) * time.Microsecond)
	want := l.Peek(s, then, bucket.Tokens(cost), waitOf(wait))
	if got == want {
		return
	}
	if l.Algorithm() != bucket.AlgorithmSlidingLog || got.Allowed != want.Allowed || got.RetryAfter != want.RetryAfter ||
		got.FullAfter() != want.FullAfter() || got.Remaining() > want.Remaining() {
		t.Fatalf("%v with %+v, asked for %d with a wait of %d at %d, shows %+v; %d µs later\n got %+v\nwant %+v", l, s, cost, wait, now, seen, later, got, want)
	}
}

// alone plays a history of one limit and returns the state and an instant.
func alone(r *rand.Rand, o *oracleLimit) (bucket.State, int64) {
	var s bucket.State
	now := upTo(r, 1<<51)
	for range r.IntN(12) {
		if now = walk(r, o, now); now > 1<<52 || now < 0 {
			s, now = bucket.State{}, upTo(r, 1<<51)
		}
		if r.IntN(8) == 0 {
			s = o.limit.Refund(s, bucket.Instant(now), bucket.Tokens(price(r, o)))
			continue
		}
		s, _ = o.limit.Reserve(s, bucket.Instant(now), bucket.Tokens(price(r, o)), waitOf(patience(r, o)))
	}
	return s, now
}

func TestLater_IsAPeekThen(t *testing.T) {
	eachKind(t, func(t *testing.T, r *rand.Rand, kind bucket.Spec) {
		denied := 0
		for range 3000 {
			o := randomOf(r, kind)
			s, now := alone(r, o)
			for range 10 {
				cost, wait := price(r, o), patience(r, o)
				seen := o.limit.Peek(s, bucket.Instant(now), bucket.Tokens(cost), waitOf(wait))
				if !seen.Allowed && seen.RetryAfter != bucket.Never {
					denied++
				}
				sameLater(t, o, s, now, cost, wait, lapse(r, o, seen))
			}
		}
		if denied < 1000 {
			t.Errorf("only %d of the costs were denied for a time", denied)
		}
	})
}

// An admitted cost stays spent.
func TestLater_AfterATake(t *testing.T) {
	eachKind(t, func(t *testing.T, r *rand.Rand, kind bucket.Spec) {
		for range 3000 {
			o := randomOf(r, kind)
			s, now := alone(r, o)
			s, taken := o.limit.Reserve(s, bucket.Instant(now), bucket.Tokens(price(r, o)), waitOf(patience(r, o)))
			if !taken.Allowed {
				continue
			}
			later := lapse(r, o, taken)
			d := time.Duration(later) * time.Microsecond
			got, want := taken.After(d), o.limit.Peek(s, bucket.Instant(now+later), 0, 0)
			exact := o.limit.Algorithm() != bucket.AlgorithmSlidingLog
			wait := max(taken.Wait()-d, 0)
			if taken.Wait() == bucket.LongestWait { // it may be cut: ask again then, without a place in a queue
				wait = o.limit.Peek(s, bucket.Instant(now+later), 0, -time.Microsecond).RetryAfter
			}
			if !got.Allowed || got.Cost != taken.Cost || got.FullAfter() != want.FullAfter() ||
				got.Remaining() > want.Remaining() || exact && (got.Remaining() != want.Remaining() || got.Wait() != wait) {
				t.Fatalf("%v with %+v shows %+v at %d; %d µs later\n got %+v\nwant %+v", o.limit, s, taken, now, later, got, want)
			}
		}
	})
}

// A snapshot may have another limit than its state. Later never denies a cost that the limit then admits.
func TestLater_NeverDeniesTooLong(t *testing.T) {
	r := random(140)
	for range 20_000 {
		o := randomOf(r, kinds[r.IntN(len(kinds))].spec)
		s, now := alone(r, randomOf(r, kinds[r.IntN(len(kinds))].spec))
		cost := price(r, o)
		seen := o.limit.Peek(s, bucket.Instant(now), bucket.Tokens(cost), 0)
		later := lapse(r, o, seen)
		got, want := seen.After(time.Duration(later)*time.Microsecond), o.limit.Peek(s, bucket.Instant(now+later), bucket.Tokens(cost), 0)
		if got.RetryAfter > want.RetryAfter || got.RetryAfter == bucket.Never != (want.RetryAfter == bucket.Never) {
			t.Fatalf("%v with %+v, asked for %d at %d, shows %+v; %d µs later\n got %+v\nwant %+v", o.limit, s, cost, now, seen, later, got, want)
		}
	}
}

func TestLater_AtTheEdges(t *testing.T) {
	l, err := bucket.NewLimit(2*bucket.Token, bucket.Rate{Tokens: bucket.Token, Per: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	s, _ := l.Take(bucket.State{}, 1e9, 2*bucket.Token)
	empty := l.Peek(s, 1e9, bucket.Token, 0)
	for _, d := range []time.Duration{-time.Second, 0, time.Microsecond - 1} {
		if got := empty.After(d); got != empty {
			t.Errorf("%v later: %+v, want no change", d, got)
		}
	}
	if got := empty.After(1<<63 - 1); !got.Allowed || got.RetryAfter != 0 || got.Remaining() != 2*bucket.Token || got.FullAfter() != 0 {
		t.Errorf("at the end of time: %+v", got)
	}
	never := l.Peek(s, 1e9, 3*bucket.Token, 0)
	if got := never.After(time.Hour); got.Allowed || got.RetryAfter != bucket.Never || got.Remaining() != 2*bucket.Token {
		t.Errorf("a cost that never fits, an hour later: %+v", got)
	}
	if got := (bucket.Snapshot{}).After(time.Hour); got != (bucket.Snapshot{}) {
		t.Errorf("the zero snapshot, an hour later: %+v", got)
	}
}
