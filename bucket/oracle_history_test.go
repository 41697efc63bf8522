// SPDX-License-Identifier: Apache-2.0

package bucket_test

import (
	"math/big"

	"github.com/metehq/mete/bucket"
)

// These oracles cancel takes of token buckets without debt. A cost c that is taken at t0 and canceled at t1 returns at most
// d = min(c, least missing amount in [t0, t1]). Amounts are exact, in thousandths of a token.

// An oraclePath is the missing amount of a bucket over time. Between two takes the amount only falls, so it has its minimum
// just before the later take.
type oraclePath struct {
	l       *oracleLimit
	missing *big.Rat // at asOf
	asOf    int64
	minima  []*big.Rat // before each take
}

func newPath(l *oracleLimit) *oraclePath { return &oraclePath{l: l, missing: new(big.Rat)} }

// at returns the path's instant for a clock that shows now.
func (p *oraclePath) at(now int64) int64 {
	if _, per := p.l.limit.Refill(); p.l.limit.Algorithm() == bucket.AlgorithmStepped {
		now = floorTo(now, 0, per)
	}
	return max(now, p.asOf)
}

// refilled returns the refill between two instants of the path. A stepped limit refills at multiples of its period.
func (l *oracleLimit) refilled(from, to int64) *big.Rat {
	sum := big.NewRat(to-from, 1)
	return sum.Mul(sum, l.rate)
}

// advance refills the bucket until now.
func (p *oraclePath) advance(now int64) {
	at := p.at(now)
	p.missing = positive(new(big.Rat).Sub(p.missing, p.l.refilled(p.asOf, at)))
	p.asOf = at
}

// take adds an admitted cost. The minima after the take are those from the returned number on.
func (p *oraclePath) take(now, cost int64) int {
	p.advance(now)
	p.minima = append(p.minima, p.missing)
	p.missing = new(big.Rat).Add(p.missing, big.NewRat(cost, 1))
	return len(p.minima)
}

// exact returns the most that a cancellation of amount at now may return. The minima from since on follow the take.
func (p *oraclePath) exact(now int64, amount *big.Rat, since int) *big.Rat {
	p.advance(now)
	d := amount
	for _, m := range p.minima[since:] {
		d = least(d, m)
	}
	return least(d, p.missing)
}

// cancel returns back, a part of the canceled amount of a take. Later cancellations see the path without amount: it was
// lower by amount, until the bucket without amount was full.
func (p *oraclePath) cancel(now int64, amount, back *big.Rat, since int) {
	p.advance(now)
	d := amount
	for i := since; i < len(p.minima); i++ {
		old := p.minima[i]
		p.minima[i], d = positive(new(big.Rat).Sub(old, d)), least(d, old)
	}
	p.missing = new(big.Rat).Sub(p.missing, back)
}

// positive returns r, or 0 if r is negative.
func positive(r *big.Rat) *big.Rat {
	if r.Sign() < 0 {
		return new(big.Rat)
	}
	return r
}

// oracleEpochs are the minima that a bucket keeps, if all its holds and awaits last the same time. An epoch begins with one of
// them, at least a seventh of that time after the last epoch. A path knows all minima, epochs only one each.
type oracleEpochs struct {
	path   *oraclePath
	lasts  int64 // each hold and await
	until  int64 // the last end of a hold or await
	epochs []oracleEpoch
}

type oracleEpoch struct {
	start int64
	least *big.Rat
}

// active reports whether a hold or an await of the bucket has not ended at now.
func (e *oracleEpochs) active(now int64) bool {
	if max(now, e.path.asOf) >= e.until {
		e.epochs = nil
	}
	return e.epochs != nil
}

// lower notes the present amount in the last epoch.
func (e *oracleEpochs) lower() {
	if n := len(e.epochs); n > 0 {
		e.epochs[n-1].least = least(e.epochs[n-1].least, e.path.missing)
	}
}

// take adds an admitted cost. With keeps, the take is a hold or an await.
func (e *oracleEpochs) take(now, cost int64, keeps bool) {
	e.active(now)
	e.path.advance(now)
	e.lower()
	e.path.take(now, cost)
	if !keeps {
		return
	}
	at := e.path.asOf
	e.until = max(e.until, at+e.lasts)
	if n := len(e.epochs); n > 0 && (e.epochs[n-1].start == at || 7*(at-e.epochs[n-1].start) < e.lasts) {
		return
	}
	e.epochs = append(e.epochs, oracleEpoch{at, e.path.missing})
}

// cancel returns the part of an amount that the epochs allow. The take of cost was at the instant from.
func (e *oracleEpochs) cancel(now int64, amount *big.Rat, cost, from int64) *big.Rat {
	active := e.active(now)
	e.path.advance(now)
	e.lower()
	// left returns the part of the cost that has not refilled by an instant: the bucket misses at least this much.
	left := func(until int64) *big.Rat {
		return positive(new(big.Rat).Sub(big.NewRat(cost, 1), e.path.l.refilled(from, until)))
	}
	own := least(amount, left(e.path.asOf)) // the bucket misses this much since the take
	if !active {
		return e.give(own)
	}
	first := 0
	for first+1 < len(e.epochs) && e.epochs[first+1].start <= from {
		first++
	}
	lowered, d := append([]oracleEpoch(nil), e.epochs...), amount
	for i := first; i < len(e.epochs); i++ {
		m := e.epochs[i].least
		lowered[i].least = positive(new(big.Rat).Sub(m, d))
		if i == first && e.epochs[i].start <= from { // the minimum may be older than the take
			end := e.path.asOf
			if i+1 < len(e.epochs) {
				end = e.epochs[i+1].start
			}
			if rest := left(end); rest.Cmp(m) > 0 {
				m = rest
			}
		}
		if d = least(d, m); d.Cmp(own) < 0 {
			d = own
		}
	}
	if e.epochs[first].start > from { // nothing is known about the time before the epochs
		d = own
	}
	if d.Sign() > 0 { // else the take stays
		e.epochs = lowered
	}
	return e.give(d)
}

func (e *oracleEpochs) give(back *big.Rat) *big.Rat {
	back = least(back, e.path.missing)
	e.path.missing = new(big.Rat).Sub(e.path.missing, back)
	return back
}
