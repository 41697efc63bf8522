// SPDX-License-Identifier: Apache-2.0

package bucket_test

import (
	"hash/fnv"
	"math"
	"math/big"
	"testing"
	"time"

	"github.com/metehq/mete/bucket"
)

// An oracle is a simple and slow textbook bucket of any algorithm. It shares only the meaning of a limit with
// the package. This file contains the common part; each algorithm has its own file.
//
// Amounts are in thousandths, and times in microseconds.
type oracle struct {
	missing *big.Rat    // from full, at asOf; nil is a bucket never written
	asOf    int64       // the expected AsOf of the state
	unit    string      // what the limit counted in that wrote it
	prev    int64       // of a sliding window: the previous window's count
	log     []admission // of a sliding log
}

type oracleLimit struct {
	limit bucket.Limit
	start int64 // where the intervals of a stepped limit begin

	starts []int64 // all window starts of a calendar limit

	capacity, rate, debt *big.Rat
	unit                 string
}

// forced stands for bucket.Forced among waits in microseconds.
const forced = math.MinInt64

func waitOf(us int64) time.Duration {
	if us == forced {
		return bucket.Forced
	}
	return time.Duration(us) * time.Microsecond
}

// longest is the cap of waits in microseconds.
const longest = 1<<53 - 1

// oracleOf reads a limit through its exported methods.
func oracleOf(l bucket.Limit) *oracleLimit {
	n, p := l.Refill()
	rate := new(big.Rat)
	if p != 0 {
		rate = big.NewRat(int64(n), p)
	}
	unit := "1"
	switch l.Algorithm() {
	case bucket.AlgorithmContinuous:
		unit = rate.Denom().String()
	case bucket.AlgorithmSlidingWindow:
		unit = "window of " + big.NewInt(p).String()
	}
	return &oracleLimit{
		limit: l, capacity: big.NewRat(int64(l.Capacity()), 1), rate: rate,
		debt: big.NewRat(int64(l.MaxReserved()), 1), unit: unit,
	}
}

// oracleFor returns the limit of s for one key, with the start of its intervals, which no method returns.
func oracleFor(s bucket.Spec, key string) (*oracleLimit, error) {
	l, _, err := s.Compile()
	if err != nil {
		return nil, err
	}
	o := oracleOf(l.ForKey(key))
	o.starts = startsOf(s.Calendar)
	o.start = s.Start.Microseconds()
	if s.Anchor == bucket.AnchorKey {
		hash := fnv.New64a()
		hash.Write([]byte(key))
		interval := big.NewInt(s.Rate.Per.Microseconds())
		o.start = new(big.Int).Mod(new(big.Int).SetUint64(hash.Sum64()), interval).Int64()
	}
	return o, nil
}

// An answer is the expected content of a snapshot.
type answer struct {
	Allowed                     bool
	Remaining                   bucket.Tokens
	RetryAfter, FullAfter, Wait time.Duration
}

func answerOf(s bucket.Snapshot) answer {
	return answer{s.Allowed, s.Remaining(), s.RetryAfter, s.FullAfter(), s.Wait()}
}

// A view is a bucket under one limit at any instant, if nothing else happens.
type view interface {
	admits(t, cost, maxWait int64) bool
	remaining(t int64) int64
	full(t int64) bool
	owes(t, now int64) bool // at t, in the answer to a caller at now
	end() int64             // an instant at which it is surely full
	spend(o *oracle, now, cost int64)
	refund(o *oracle, now, amount int64)
}

func (o *oracle) view(l *oracleLimit, now int64) view {
	switch l.limit.Algorithm() {
	case bucket.AlgorithmStepped:
		if l.limit.Anchor() == bucket.AnchorCalendar {
			return o.calendar(l, now)
		}
		return o.steps(l, now)
	case bucket.AlgorithmSlidingWindow:
		return o.window(l)
	}
	return o.entries(l)
}

// ask answers a take or, without spend, a peek.
func (o *oracle) ask(l *oracleLimit, now, cost, maxWait int64, spend bool) answer {
	if l.limit.Algorithm() == bucket.AlgorithmContinuous {
		return o.askContinuous(l, now, cost, maxWait, spend)
	}
	v, a := o.view(l, now), answer{}
	admits := func(t int64) bool { return v.admits(t, cost, maxWait) }
	if a.Allowed = admits(now); !a.Allowed {
		a.RetryAfter = until(now, v.end(), admits)
	} else if spend {
		v.spend(o, now, cost)
		v = o.view(l, now)
	}
	a.Remaining = bucket.Tokens(max(v.remaining(now), 0))
	a.FullAfter = until(now, v.end(), v.full)
	if a.Allowed {
		a.Wait = until(now, v.end(), func(t int64) bool { return !v.owes(t, now) })
	}
	return a
}

// refund returns amount to a bucket that has been charged.
func (o *oracle) refund(l *oracleLimit, now, amount int64) {
	switch {
	case amount <= 0 || o.missing == nil || o.missing.Sign() == 0:
	case l.limit.Algorithm() == bucket.AlgorithmContinuous:
		o.refundContinuous(l, now, amount)
	default:
		o.view(l, now).refund(o, now, amount)
	}
}

// until returns the wait from now until the first instant, up to end, at which so is true. It must stay true
// from then on.
func until(now, end int64, so func(t int64) bool) time.Duration {
	if so(now) {
		return 0
	}
	lo, hi := now, max(end, now)
	if !so(hi) {
		return bucket.Never
	}
	for hi-lo > 1 {
		if mid := lo + (hi-lo)/2; so(mid) {
			hi = mid
		} else {
			lo = mid
		}
	}
	return time.Duration(min(hi-now, longest)) * time.Microsecond
}

// carried returns the missing amount when l takes over. If the unit differs, it is rounded up and at most the
// capacity.
func (o *oracle) carried(l *oracleLimit) *big.Rat {
	switch {
	case o.missing == nil:
		return new(big.Rat)
	case o.unit == l.unit:
		return o.missing
	}
	return least(new(big.Rat).SetInt(ceil(o.missing)), l.capacity)
}

// write replaces the whole state.
func (o *oracle) write(l *oracleLimit, missing, asOf int64) {
	*o = oracle{missing: big.NewRat(missing, 1), asOf: asOf, unit: l.unit}
}

// floorTo returns the last multiple of step plus start that is at most t.
func floorTo(t, start, step int64) int64 {
	return t - new(big.Int).Mod(big.NewInt(t-start), big.NewInt(step)).Int64()
}

func ceil(r *big.Rat) *big.Int {
	q := new(big.Int).Neg(r.Num())
	q.Div(q, r.Denom()) // floor: the denominator is positive
	return q.Neg(q)
}

func least(a, b *big.Rat) *big.Rat {
	if a.Cmp(b) <= 0 {
		return a
	}
	return new(big.Rat).Set(b)
}

// A pair is a bucket and its oracle.
type pair struct {
	state  bucket.State
	oracle oracle
}

// ask takes or peeks on both and compares the answers.
func (p *pair) ask(t *testing.T, l bucket.Limit, now, cost, maxWait int64, spend bool) bucket.Snapshot {
	t.Helper()
	return p.play(t, oracleOf(l), now, cost, maxWait, spend)
}

func (p *pair) play(t *testing.T, o *oracleLimit, now, cost, maxWait int64, spend bool) bucket.Snapshot {
	t.Helper()
	l, before, wait := o.limit, p.state, waitOf(maxWait)
	var snap bucket.Snapshot
	if spend {
		p.state, snap = l.Reserve(before, bucket.Instant(now), bucket.Tokens(cost), wait)
	} else {
		snap = l.Peek(before, bucket.Instant(now), bucket.Tokens(cost), wait)
	}
	if want := p.oracle.ask(o, now, cost, maxWait, spend); answerOf(snap) != want {
		n, per := l.Refill()
		t.Fatalf("%v (n=%d p=%d start=%d anchor %d, max reserved %v) of %+v %v at %d: cost %d, wait %d, spend %v:\n got %+v\nwant %+v",
			l, int64(n), per, o.start, l.Anchor(), l.MaxReserved(), before, before.Log.Entries(), now, cost, maxWait, spend, answerOf(snap), want)
	}
	if !snap.Allowed && p.state != before {
		t.Fatalf("%v at %d: denied cost %d changed the state from %+v to %+v", l, now, cost, before, p.state)
	}
	p.check(t, l, before)
	return snap
}

func (p *pair) refund(t *testing.T, l bucket.Limit, now, amount int64) {
	t.Helper()
	p.giveBack(t, oracleOf(l), now, amount)
}

func (p *pair) giveBack(t *testing.T, o *oracleLimit, now, amount int64) {
	t.Helper()
	before := p.state
	p.state = o.limit.Refund(before, bucket.Instant(now), bucket.Tokens(amount))
	p.oracle.refund(o, now, amount)
	p.check(t, o.limit, before)
}

// check compares the state with the oracle and with its invariants.
func (p *pair) check(t *testing.T, l bucket.Limit, before bucket.State) {
	t.Helper()
	checkInvariants(t, l, before, p.state)
	if o := p.oracle; o.missing != nil && int64(p.state.AsOf) != o.asOf {
		t.Fatalf("%v: from %+v to %+v, by the oracle as of %d", l, before, p.state, o.asOf)
	}
}

// checkInvariants checks the invariants of State.
func checkInvariants(t *testing.T, l bucket.Limit, before, after bucket.State) {
	t.Helper()
	if after == before {
		return // it may be of another limit
	}
	sum, last := int64(0), after.AsOf
	for i, e := range after.Log.Entries() {
		if sum += int64(e.Cost); e.Cost <= 0 || i > 0 && e.At <= last {
			t.Fatalf("%v: entries out of order, or empty: %v", l, after.Log.Entries())
		}
		last = e.At
	}
	takesOver := l.Algorithm() == bucket.AlgorithmSlidingWindow && before.Unit != after.Unit
	switch {
	case after.Spent < 0 || after.Spent >= 1<<53,
		after.Prev < 0 || after.Prev > after.Spent || after.Prev != 0 && l.Algorithm() != bucket.AlgorithmSlidingWindow,
		after.Unit != l.Unit(),
		!l.Full(before, before.AsOf) && after.AsOf < before.AsOf && !takesOver,
		(after.Log != nil) != (l.Algorithm() == bucket.AlgorithmSlidingLog && after.Spent != 0),
		after.Log != nil && (sum != after.Spent || last != after.AsOf || len(after.Log.Entries()) > bucket.MaxLogEntries):
		t.Fatalf("%v: invariant broken: %+v %v after %+v", l, after, after.Log.Entries(), before)
	}
}
