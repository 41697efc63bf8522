// SPDX-License-Identifier: Apache-2.0

package bucket

import "fmt"

// Shard returns the limit of shard i of n, 0 ≤ i < n, for hot keys that are split over several rows. The shards add
// up to exactly l. Capacity and max reserved are divided to the thousandth, with the remainders in the first shards.
// Together the shards admit at most as much as l.
//
// Only a token bucket without a queue can be sharded, and each shard must hold at least one token. Shard also
// returns an error if (capacity + max reserved)·p of a shard exceeds the bound of [Spec.Compile]. A shard's p may be n
// times larger than in l. If l has no max reserved, the shards use the largest debt that fits.
func (l Limit) Shard(i, n int) (Limit, error) {
	switch {
	case i < 0 || i >= n:
		return Limit{}, fmt.Errorf("%w: shard %d of %d", ErrLimit, i, n)
	case l.how != 0:
		return Limit{}, fmt.Errorf("%w: %v: only a token bucket without a queue can be split", ErrLimit, l)
	case int64(l.capacity)/int64(n) < int64(Token):
		return Limit{}, fmt.Errorf("%w: a capacity of %v split over %d shards: each must hold a token", ErrLimit, l.capacity, n)
	}
	common := gcd(l.n, int64(n)) // keeps n/p in lowest terms
	s := Limit{n: l.n / common, p: l.p * (int64(n) / common)}
	most := Tokens(maxUnits / s.p)
	capacity, debt := ceilDiv(int64(l.capacity), int64(n)), ceilDiv(int64(l.debt), int64(n)) // of the first shard
	unbounded := l.debt == Tokens(maxUnits/l.p)-l.capacity
	if Tokens(capacity) > most || !unbounded && Tokens(capacity+debt) > most {
		return Limit{}, fmt.Errorf("%w: %v split over %d shards does not fit: use fewer shards, a rounder rate or a smaller capacity", ErrLimit, l, n)
	}
	s.capacity, s.debt = splitTokens(l.capacity, i, n), splitTokens(l.debt, i, n)
	if unbounded {
		s.debt = min(s.debt, most-s.capacity)
	}
	return s, nil
}

func splitTokens(t Tokens, i, n int) Tokens {
	share := t / Tokens(n)
	if Tokens(i) < t%Tokens(n) {
		share++
	}
	return share
}

func gcd(a, b int64) int64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}
