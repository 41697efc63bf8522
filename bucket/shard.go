// SPDX-License-Identifier: Apache-2.0

package bucket

import "fmt"

// Shard returns the limit of the i'th of n buckets, 0 ≤ i < n, that l is split
// over, so that a hot one need not be a single row. The parts add up to l
// exactly: each has an n'th of the rate, and capacity and max reserved divide to
// the thousandth, with the remainders going to the first shards. So what the
// shards admit together stays within what l admits.
//
// Only a token bucket without a queue can be split, and only so far that every
// shard holds a token. It is refused, too, where (capacity + max reserved)·p of a
// shard, whose p may be n times that of l, leaves the bounds of [Spec.Compile];
// where l has no max reserved, that of the shards is what the bounds allow.
func (l Limit) Shard(i, n int) (Limit, error) {
	switch {
	case i < 0 || i >= n:
		return Limit{}, fmt.Errorf("%w: shard %d of %d", ErrLimit, i, n)
	case l.how != 0:
		return Limit{}, fmt.Errorf("%w: %v: only a token bucket without a queue can be split", ErrLimit, l)
	case int64(l.capacity)/int64(n) < int64(Token):
		return Limit{}, fmt.Errorf("%w: a capacity of %v split over %d shards: each must hold a token", ErrLimit, l.capacity, n)
	}
	common := gcd(l.n, int64(n)) // n/p is in lowest terms, and so will its part be
	s := Limit{n: l.n / common, p: l.p * (int64(n) / common)}
	most := Tokens(maxUnits / s.p)
	capacity, debt := ceilDiv(int64(l.capacity), int64(n)), ceilDiv(int64(l.debt), int64(n)) // of the first shard
	unbounded := l.debt == Tokens(maxUnits/l.p)-l.capacity
	if Tokens(capacity) > most || !unbounded && Tokens(capacity+debt) > most {
		return Limit{}, fmt.Errorf("%w: %v split over %d shards does not fit: use fewer shards, a rounder rate or a smaller capacity", ErrLimit, l, n)
	}
	s.capacity, s.debt = part(l.capacity, i, n), part(l.debt, i, n)
	if unbounded {
		s.debt = min(s.debt, most-s.capacity)
	}
	return s, nil
}

// part is the i'th of n parts of t.
func part(t Tokens, i, n int) Tokens {
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
