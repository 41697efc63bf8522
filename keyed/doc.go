// SPDX-License-Identifier: Apache-2.0

// Package keyed limits keys with one limit, in one line:
//
//	var logins = keyed.Must("10/1m", 20)
//
//	if !logins.Allow(address) {
//		return errTooMany
//	}
//
// Each address gets a burst of 20 tokens, refilled at 10 per minute.
//
// # Methods
//
//   - [Limiter.Allow] takes one token now or returns false. Most programs need only Allow.
//   - [Limiter.Take] takes several tokens, and returns the wait and the remaining tokens.
//   - [Limiter.TakeUpTo] takes the available part of a cost.
//   - [Limiter.Wait] sleeps until the tokens are available, for workers that prefer a delay to a denial.
//   - [Limiter.Reserve] returns the wait without sleeping. Settle the reservation when the true cost is known, or
//     cancel it if the work does not happen.
//   - [Limiter.Peek] reads without taking. [Limiter.Refund] and [Limiter.Reset] are for admins: they add tokens and
//     fill a bucket.
//
// Costs are whole tokens. A cost below 0 is never allowed and returns no tokens.
//
// # Keys
//
// Keys are strings. The limiter stores only keyed hashes of them. If a key consists of external parts, quote
// the parts: fmt.Sprintf("%q %q", team, user). Plain concatenation would give "a1" with "2" and "a" with "12"
// the same bucket.
//
// # Memory
//
// The limiter keeps a bucket for each used key that is not full: at most [Config.MaxKeys], 1 << 20 by default,
// at about 40 bytes each. A sliding log adds 16 bytes per cost in its window. Full buckets are evicted first,
// which changes no decision. If there are none, new keys share one bucket, so a flood of keys never resets a
// limited client. There is no goroutine and nothing to close or sweep.
//
// The buckets of a [Limiter] are in the memory of this process. After a restart they are full, and n processes
// together admit n times the limit.
//
// # Redis or PostgreSQL
//
// [Over] returns a limiter with buckets in a store that processes share:
//
//	limiter, err := redisstore.NewLimiter(ctx, "redis://127.0.0.1:6379?prefix=shop:", matcher)
//	logins, err := keyed.Over(limiter.Store(), "10/1m", 20)
//	…
//	allowed, err := logins.Allow(ctx, address)
//
// Its methods take a context and return an error, because a store can fail. After an error the request is not
// admitted: the caller decides whether to continue. The store sees only hashes of the keys: see [Shared].
//
// # Policies and multiple limits
//
// For several limits per request, tiers, and policies in files, use package mete. The examples directory
// contains recipes.
package keyed
