// SPDX-License-Identifier: Apache-2.0

// Package workload makes the sequence of keys of a run.
package workload

import "math/rand"

// KeyLen is the length of a key in bytes.
const KeyLen = 16

// The lengths of sequences, which repeat. They cover most of 100,000 keys and the popular ones of 1,000,000.
// Longer sequences would compete with the limiter for the cache.
const (
	UniformCalls = 1 << 18
	ZipfCalls    = 1 << 20
)

// Keys holds the keys of consecutive calls in one string. The next key is in the cache, as it would be after
// parsing a request, and the garbage collector has no work.
type Keys string

func (k Keys) Len() int { return len(k) / KeyLen }

// At returns the key of call i. It does not allocate.
func (k Keys) At(i int) string { return string(k[i*KeyLen : i*KeyLen+KeyLen]) }

// Each returns n different keys, once each.
func Each(n int) Keys {
	next := 0
	return keys(n, func() int { next++; return next - 1 })
}

// Uniform returns calls with keys of uniform probability among n. Equal arguments give equal keys, also in Zipf.
func Uniform(n, calls int) Keys {
	rng := rand.New(rand.NewSource(seed))
	return keys(calls, func() int { return rng.Intn(n) })
}

// Zipf returns calls with keys of Zipf-distributed probability among n, with exponent s > 1. The popular keys
// are scattered, as if the keys had arrived in random order.
func Zipf(n, calls int, s float64) Keys {
	rng := rand.New(rand.NewSource(seed))
	scattered := rng.Perm(n)
	law := rand.NewZipf(rng, s, 1, uint64(n-1))
	return keys(calls, func() int { return scattered[law.Uint64()] })
}

// seed makes runs repeatable.
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
