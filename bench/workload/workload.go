// SPDX-License-Identifier: Apache-2.0

// Package workload makes the keys that a run asks for, and their order.
package workload

import "math/rand"

// KeyLen is the length of a key in bytes.
const KeyLen = 16

// How many calls a sequence has before it starts over: enough to ask for most
// of 100,000 keys and for the popular ones of 1,000,000, and no more, because
// the sequence competes with the limiter for the cache.
const (
	UniformCalls = 1 << 18
	ZipfCalls    = 1 << 20
)

// Keys are keys in the order of the calls, end to end in one string: the next
// key is in the cache, as it would be of a request just parsed, and costs the
// collector nothing.
type Keys string

// Len returns the number of calls.
func (k Keys) Len() int { return len(k) / KeyLen }

// At returns the key of call i. It does not allocate.
func (k Keys) At(i int) string { return string(k[i*KeyLen : i*KeyLen+KeyLen]) }

// Each returns n different keys, once each.
func Each(n int) Keys {
	next := 0
	return keys(n, func() int { next++; return next - 1 })
}

// Uniform returns calls calls that choose among n keys with equal probability.
// Equal arguments give equal keys, here and below.
func Uniform(n, calls int) Keys {
	rng := rand.New(rand.NewSource(seed))
	return keys(calls, func() int { return rng.Intn(n) })
}

// Zipf returns calls calls that choose among n keys by a Zipf law of exponent
// s > 1. The popular keys are scattered among the others, as they would be if
// they had arrived in any order.
func Zipf(n, calls int, s float64) Keys {
	rng := rand.New(rand.NewSource(seed))
	scattered := rng.Perm(n)
	law := rand.NewZipf(rng, s, 1, uint64(n-1))
	return keys(calls, func() int { return scattered[law.Uint64()] })
}

// seed makes every run ask for the same keys.
const seed = 1

func keys(calls int, next func() int) Keys {
	all := make([]byte, 0, calls*KeyLen)
	for range calls {
		all = append(all, "user:00000000000"...)
		for at, n := len(all)-1, next(); n > 0; at, n = at-1, n/10 {
			all[at] = byte('0' + n%10)
		}
	}
	return Keys(all)
}
