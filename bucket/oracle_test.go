// SPDX-License-Identifier: Apache-2.0

package bucket_test

import (
	"math/big"
	"testing"
	"time"

	"github.com/metehq/mete/bucket"
)

// An oracle is the textbook bucket: a number of tokens, a rational, that rises
// with time up to the capacity. It shares nothing with the package but the
// meaning of a limit, and it is as slow as it is plain.
//
// All amounts are in thousandths, all times in microseconds.
type oracle struct {
	level *big.Rat     // tokens there at asOf, below 0 for debt; nil is a bucket never written
	asOf  int64        // the latest instant written
	wrote *oracleLimit // the limit level was written under
}

type oracleLimit struct {
	capacity, rate, debt *big.Rat
	period               string // the rate's denominator in lowest terms
}

// oracleOf reads a limit through its exported methods.
func oracleOf(l bucket.Limit) *oracleLimit {
	n, p := l.Refill()
	rate := new(big.Rat)
	if p != 0 {
		rate = big.NewRat(int64(n), p)
	}
	return &oracleLimit{
		capacity: big.NewRat(int64(l.Capacity()), 1), rate: rate,
		debt: big.NewRat(int64(l.MaxReserved()), 1), period: rate.Denom().String(),
	}
}

// at returns the tokens there are at now under l, and the bucket's instant.
func (o *oracle) at(l *oracleLimit, now int64) (level *big.Rat, asOf int64) {
	asOf = max(now, o.asOf, 0)
	if o.level == nil || o.level.Cmp(o.wrote.capacity) == 0 {
		return new(big.Rat).Set(l.capacity), asOf
	}
	missing := new(big.Rat).Sub(o.wrote.capacity, o.level)
	if o.wrote.period != l.period {
		missing.SetInt(ceil(missing))
		missing = least(missing, l.capacity)
	}
	level = new(big.Rat).Sub(l.capacity, missing)
	elapsed := new(big.Rat).SetInt64(asOf - o.asOf)
	level.Add(level, elapsed.Mul(elapsed, l.rate))
	level = least(level, l.capacity)
	if floor := new(big.Rat).Neg(l.debt); level.Cmp(floor) < 0 {
		level = floor
	}
	return level, asOf
}

// An answer is what a snapshot has to show.
type answer struct {
	Allowed                     bool
	Remaining                   bucket.Tokens
	RetryAfter, FullAfter, Wait time.Duration
}

func answerOf(s bucket.Snapshot) answer {
	return answer{s.Allowed, s.Remaining(), s.RetryAfter, s.FullAfter(), s.Wait()}
}

// ask answers a take or, without spend, a peek.
func (o *oracle) ask(l *oracleLimit, now, cost, maxWait int64, spend bool) answer {
	level, asOf := o.at(l, now)
	lend := new(big.Rat).SetInt64(max(maxWait, 0))
	lend = least(lend.Mul(lend, l.rate), l.debt)
	// lack is what has to be refilled before the cost fits.
	lack := new(big.Rat).SetInt64(cost)
	lack.Sub(lack, lend).Sub(lack, level)
	full := new(big.Rat).Add(lack, level)
	a := answer{}
	switch {
	case cost < 0 || full.Cmp(l.capacity) > 0:
		a.RetryAfter = bucket.Never
	case lack.Sign() > 0:
		a.RetryAfter = wait(lack, l.rate, asOf, now)
	default:
		a.Allowed = true
		if spend {
			level.Sub(level, new(big.Rat).SetInt64(cost))
			o.write(l, level, asOf)
		}
	}
	if level.Sign() > 0 {
		a.Remaining = bucket.Tokens(new(big.Int).Div(level.Num(), level.Denom()).Int64())
	}
	if missing := new(big.Rat).Sub(l.capacity, level); missing.Sign() > 0 {
		a.FullAfter = wait(missing, l.rate, asOf, now)
	}
	if level.Sign() < 0 && a.Allowed {
		a.Wait = wait(new(big.Rat).Neg(level), l.rate, asOf, now)
	}
	return a
}

// refund gives amount back to a bucket that has been charged.
func (o *oracle) refund(l *oracleLimit, now, amount int64) {
	if amount <= 0 || o.level == nil || o.level.Cmp(o.wrote.capacity) == 0 {
		return
	}
	level, asOf := o.at(l, now)
	level.Add(level, new(big.Rat).SetInt64(amount))
	o.write(l, least(level, l.capacity), asOf)
}

func (o *oracle) write(l *oracleLimit, level *big.Rat, asOf int64) {
	o.level, o.asOf, o.wrote = level, asOf, l
}

// wait is how long a caller at now waits for a bucket at asOf to refill lack.
func wait(lack, rate *big.Rat, asOf, now int64) time.Duration {
	us := ceil(new(big.Rat).Quo(lack, rate))
	us.Add(us, big.NewInt(asOf)).Sub(us, big.NewInt(now))
	if most := int64(bucket.Never / time.Microsecond); us.Cmp(big.NewInt(most)) > 0 {
		us.SetInt64(most)
	}
	return time.Duration(us.Int64()) * time.Microsecond
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

// A pair is a bucket and its oracle, kept in step.
type pair struct {
	state  bucket.State
	oracle oracle
}

// ask takes or peeks on both and compares them.
func (p *pair) ask(t *testing.T, l bucket.Limit, now, cost, maxWait int64, spend bool) bucket.Snapshot {
	t.Helper()
	before, wait := p.state, time.Duration(maxWait)*time.Microsecond
	var snap bucket.Snapshot
	if spend {
		p.state, snap = l.Reserve(before, bucket.Instant(now), bucket.Tokens(cost), wait)
	} else {
		snap = l.Peek(before, bucket.Instant(now), bucket.Tokens(cost), wait)
	}
	if want := p.oracle.ask(oracleOf(l), now, cost, maxWait, spend); answerOf(snap) != want {
		n, per := l.Refill()
		t.Fatalf("%v (n=%d p=%d, max reserved %v) of %+v at %d: cost %d, wait %d, spend %v:\n got %+v\nwant %+v",
			l, int64(n), per, l.MaxReserved(), before, now, cost, maxWait, spend, answerOf(snap), want)
	}
	if !snap.Allowed && p.state != before {
		t.Fatalf("%v at %d: denied cost %d changed the state from %+v to %+v", l, now, cost, before, p.state)
	}
	checkInvariants(t, l, before, p.state)
	return snap
}

func (p *pair) refund(t *testing.T, l bucket.Limit, now, amount int64) {
	t.Helper()
	before := p.state
	p.state = l.Refund(before, bucket.Instant(now), bucket.Tokens(amount))
	p.oracle.refund(oracleOf(l), now, amount)
	checkInvariants(t, l, before, p.state)
}

// checkInvariants checks what State promises.
func checkInvariants(t *testing.T, l bucket.Limit, before, after bucket.State) {
	t.Helper()
	if after.Spent < 0 || after.Spent >= 1<<53 || after.AsOf < before.AsOf {
		t.Fatalf("%v: invariant broken: %+v after %+v", l, after, before)
	}
}
