// SPDX-License-Identifier: Apache-2.0

package bucket_test

import (
	"math/big"
	"time"

	"github.com/metehq/mete/bucket"
)

// The continuous bucket is a rational number of tokens that rises with time up to the capacity.

// level returns the tokens at now under l, and the bucket's instant.
func (o *oracle) level(l *oracleLimit, now int64) (level *big.Rat, asOf int64) {
	asOf = max(now, o.asOf, 0)
	if o.missing == nil || o.missing.Sign() == 0 {
		return new(big.Rat).Set(l.capacity), asOf
	}
	level = new(big.Rat).Sub(l.capacity, o.carried(l))
	elapsed := new(big.Rat).SetInt64(asOf - o.asOf)
	level.Add(level, elapsed.Mul(elapsed, l.rate))
	level = least(level, l.capacity)
	if floor := new(big.Rat).Neg(l.debt); level.Cmp(floor) < 0 {
		level = floor
	}
	return level, asOf
}

// loan returns the debt available to work that can wait for maxWait.
func (l *oracleLimit) loan(maxWait int64) *big.Rat {
	if maxWait == forced || maxWait == 0 && l.limit.Queued() {
		return l.debt
	}
	lend := new(big.Rat).SetInt64(max(maxWait, 0))
	return least(lend.Mul(lend, l.rate), l.debt)
}

func (o *oracle) askContinuous(l *oracleLimit, now, cost, maxWait int64, spend bool) answer {
	level, asOf := o.level(l, now)
	// lack is the refill that the cost requires.
	lack := new(big.Rat).SetInt64(cost)
	lack.Sub(lack, l.loan(maxWait)).Sub(lack, level)
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
			o.leave(l, level, asOf)
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

func (o *oracle) refundContinuous(l *oracleLimit, now, amount int64) {
	level, asOf := o.level(l, now)
	level.Add(level, new(big.Rat).SetInt64(amount))
	o.leave(l, least(level, l.capacity), asOf)
}

// leave writes a bucket with this level.
func (o *oracle) leave(l *oracleLimit, level *big.Rat, asOf int64) {
	*o = oracle{missing: new(big.Rat).Sub(l.capacity, level), asOf: asOf, unit: l.unit}
}

// wait returns the time from now until a bucket at asOf has refilled lack.
func wait(lack, rate *big.Rat, asOf, now int64) time.Duration {
	us := ceil(new(big.Rat).Quo(lack, rate))
	us.Add(us, big.NewInt(asOf)).Sub(us, big.NewInt(now))
	if us.Cmp(big.NewInt(longest)) > 0 {
		us.SetInt64(longest)
	}
	return time.Duration(us.Int64()) * time.Microsecond
}
