// SPDX-License-Identifier: Apache-2.0

package bucket_test

import (
	"errors"
	"math/big"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/testseed"
)

func mustPenalty(t testing.TB, first, most time.Duration, factor bucket.Tokens) *bucket.Penalty {
	t.Helper()
	p, err := bucket.NewPenalty(first, most, factor)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestNewPenalty_Refuses(t *testing.T) {
	for name, tt := range map[string]struct {
		first, most time.Duration
		factor      bucket.Tokens
	}{
		"zero":             {0, 0, bucket.Token},
		"negative":         {-time.Second, time.Second, bucket.Token},
		"too short":        {time.Millisecond - time.Microsecond, time.Second, bucket.Token},
		"too long":         {time.Second, bucket.MaxPenalty + time.Microsecond, bucket.Token},
		"first above most": {2 * time.Second, time.Second, 2 * bucket.Token},
		"a nanosecond":     {time.Second + 1, 2 * time.Second, 2 * bucket.Token},
		"factor below 1":   {time.Second, time.Minute, bucket.Token - 1},
		"factor above 100": {time.Second, time.Minute, bucket.MaxPenaltyFactor + 1},
	} {
		if p, err := bucket.NewPenalty(tt.first, tt.most, tt.factor); !errors.Is(err, bucket.ErrPenalty) || p != nil {
			t.Errorf("%s: %v, %v", name, p, err)
		}
	}
}

// Penalties with the same effect are equal.
func TestPenalty_Equal(t *testing.T) {
	fixed := mustPenalty(t, time.Minute, time.Minute, 3*bucket.Token)
	never := mustPenalty(t, time.Minute, time.Hour, bucket.Token)
	grows := mustPenalty(t, time.Minute, time.Hour, 2*bucket.Token)
	var none *bucket.Penalty
	if !fixed.Equal(never) || fixed.Equal(grows) || fixed.Equal(none) || !none.Equal(nil) || none.Equal(fixed) {
		t.Error("wrong equality")
	}
	if never.Most() != time.Minute || never.Factor() != bucket.Token || grows.First() != time.Minute {
		t.Errorf("%v %v %v", never.Most(), never.Factor(), grows.First())
	}
}

func penalizedLimit(t testing.TB, capacity bucket.Tokens, rate bucket.Rate) bucket.Limit {
	t.Helper()
	l, err := bucket.NewLimit(capacity, rate)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// oraclePenalty is a naive penalty: it repeats all denials of its history.
type oraclePenalty struct {
	until, quiet int64 // the end, and the end of the quiet time
	length       *big.Rat
	level        int64
}

func (o *oraclePenalty) start(p *bucket.Penalty, now int64) {
	if now >= o.quiet {
		*o = oraclePenalty{length: new(big.Rat)}
	}
	first, most := p.First().Microseconds(), p.Most().Microseconds()
	next := new(big.Rat).Mul(o.length, big.NewRat(int64(p.Factor()), int64(bucket.Token)))
	length := new(big.Int).Div(next.Num(), next.Denom()).Int64()
	length = min(max(length, first), most)
	o.length.SetInt64(length)
	o.until, o.level = now+length, o.level+1
	if o.quiet = o.until; first != most {
		o.quiet += most
	}
}

// TestPenalty_Oracle compares random histories of a bucket with a penalty, whose settings change, with the oracle.
func TestPenalty_Oracle(t *testing.T) {
	r := rand.New(testseed.PCG(22, 1))
	started, grown := 0, 0
	for range 400 {
		l := penalizedLimit(t, bucket.Tokens(1+r.Int64N(5000)), bucket.Rate{Tokens: bucket.Tokens(1 + r.Int64N(3000)), Per: time.Second})
		var penalties []*bucket.Penalty
		for range 1 + r.IntN(2) {
			first := min(bucket.MinPenalty+time.Duration(r.Int64N(1<<(1+r.IntN(45))))*time.Microsecond, bucket.MaxPenalty)
			most := first + time.Duration(r.Int64N(bucket.MaxPenalty.Microseconds()-first.Microseconds()+1)>>r.IntN(30))*time.Microsecond
			penalties = append(penalties, mustPenalty(t, first, most, bucket.Token+bucket.Tokens(r.Int64N(int64(bucket.MaxPenaltyFactor-bucket.Token)+1))))
		}
		var state bucket.State
		var s bucket.PenaltyState
		var o oraclePenalty
		now := int64(1_800_000_000_000_000)
		for step := range 60 {
			p := penalties[r.IntN(len(penalties))]
			cost := bucket.Tokens(r.Int64N(6000))
			want := l.Peek(state, bucket.Instant(now), cost, 0)
			snap := want
			starts := r.IntN(4) > 0
			after, began := p.Apply(&snap, s, bucket.Instant(now), starts)
			expected := now >= o.until && starts && !want.Allowed && want.RetryAfter != bucket.Never
			if began != expected {
				t.Fatalf("step %d: started %v, want %v", step, began, expected)
			}
			if expected {
				if o.start(p, now); o.level > 1 {
					grown++
				}
				started++
			}
			rest := max(o.until-now, 0)
			left, level := snap.Penalty()
			if left.Microseconds() != rest || rest > 0 && level != min(o.level, 1<<18-1) || rest == 0 && level != 0 {
				t.Fatalf("step %d: penalty %v, level %d; want %d µs, level %d", step, left, level, rest, o.level)
			}
			if snap.Allowed != (want.Allowed && rest == 0) || snap.RetryAfter != max(want.RetryAfter, left) {
				t.Fatalf("step %d: %v, %v; want %v under a penalty of %v", step, snap.Allowed, snap.RetryAfter, want, left)
			}
			if began {
				s = after
			}
			if snap.Allowed {
				state, _ = l.Reserve(state, bucket.Instant(now), cost, 0)
			}
			checkPenaltyWait(t, &l, state, p, s, snap, now)
			if wait := snap.RetryAfter; r.IntN(3) == 0 && !snap.Allowed && wait < bucket.MaxPenalty {
				now += wait.Microseconds()
			} else {
				now += r.Int64N(1 << (1 + r.IntN(40)))
			}
		}
	}
	if started < 1000 || grown < 300 {
		t.Errorf("%d penalties, %d grown: too few to mean anything", started, grown)
	}
}

// checkPenaltyWait: a microsecond before the wait the limit still denies, and then it admits. After predicts both.
func checkPenaltyWait(t *testing.T, l *bucket.Limit, state bucket.State, p *bucket.Penalty, s bucket.PenaltyState, snap bucket.Snapshot, now int64) {
	t.Helper()
	if snap.Allowed || snap.RetryAfter == bucket.Never {
		return
	}
	for _, early := range []int64{1, 0} {
		at := bucket.Instant(now + snap.RetryAfter.Microseconds() - early)
		then := l.Peek(state, at, snap.Cost, 0)
		p.Apply(&then, s, at, false)
		if then.Allowed != (early == 0) {
			t.Fatalf("%d µs before the wait: allowed %v", early, then.Allowed)
		}
		if predicted := snap.After(time.Duration(at-bucket.Instant(now)) * time.Microsecond); predicted != then {
			t.Fatalf("%d µs before the wait: %+v, want %+v", early, predicted, then)
		}
	}
}

// A snapshot under a penalty has no tokens to give, and reports when it has.
func TestSnapshot_Penalize(t *testing.T) {
	l := penalizedLimit(t, 10*bucket.Token, bucket.Rate{Tokens: bucket.Token, Per: time.Second})
	snap := l.Peek(bucket.State{}, 0, bucket.Token, 0)
	snap.Penalize(60_000_000, 3)
	if snap.Allowed || snap.Remaining() != 0 || snap.Room() != 0 || snap.RetryAfter != time.Minute || snap.FullAfter() != time.Minute {
		t.Errorf("%+v: remaining %v, room %v, full after %v", snap, snap.Remaining(), snap.Room(), snap.FullAfter())
	}
	if got := snap.RoomAfter(5 * bucket.Token); got != time.Minute {
		t.Errorf("room after %v", got)
	}
	if got := snap.RoomAfter(11 * bucket.Token); got != bucket.Never {
		t.Errorf("room for 11 of 10 tokens after %v", got)
	}
	half := snap.After(30 * time.Second)
	if left, level := half.Penalty(); left != 30*time.Second || level != 3 || half.Allowed {
		t.Errorf("after half of it: %v, level %d", left, level)
	}
	if end := snap.After(time.Minute); !end.Allowed || end.Remaining() != 10*bucket.Token {
		t.Errorf("after it: %+v", end)
	}
	never := l.Peek(bucket.State{}, 0, 11*bucket.Token, 0)
	if never.Penalize(60_000_000, 1); never.RetryAfter != bucket.Never {
		t.Errorf("a cost that never fits: %v", never.RetryAfter)
	}
}
