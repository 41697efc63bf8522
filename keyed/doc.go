// SPDX-License-Identifier: Apache-2.0

// Package keyed is mete in one line, for programs that want one limit for each
// key and nothing else:
//
//	var logins = keyed.Must("10/1m", 20)
//
//	if !logins.Allow(address) {
//		return errTooMany
//	}
//
// That gives each address 20 tokens at once, and 10 a minute from then on.
//
// # Which method
//
//   - [Limiter.Allow] takes one token now or says no. It is what most callers want.
//   - [Limiter.Take] takes several, and says how long to wait and how many are left.
//   - [Limiter.TakeUpTo] takes what is there, where a part of it will do.
//   - [Limiter.Wait] sleeps until the tokens are there: for workers that would
//     rather be late than refused.
//   - [Limiter.Reserve] reports when they will be there, and does not sleep. Settle it
//     when the true cost is known, and cancel it where the work is not done.
//   - [Limiter.Peek] looks without taking. [Limiter.Refund] and [Limiter.Reset] are
//     for administrators: they add tokens, and make a bucket full.
//
// Costs are whole tokens. A cost below 0 is never allowed and gives nothing back.
//
// # Keys
//
// Keys are strings, and are kept as keyed hashes only. Where a key is made of
// parts that come from outside, quote them: fmt.Sprintf("%q %q", team, user). If
// they were only joined, "a1" with "2" and "a" with "12" would share a bucket.
//
// # Bounds
//
// There is a bucket for each key that has been used and is not full: at most
// [Config.MaxKeys], 1 << 20 by default, at about 40 bytes each (a sliding log has
// 16 more for each cost in its window). Full buckets are forgotten first, which
// cannot be noticed. If there are none, new keys share one bucket: a flood of
// keys makes a limiter forget nobody. There is no goroutine, nothing to close,
// and nothing that must be swept.
//
// The buckets of a [Limiter] are in the memory of this process. After a restart they are
// full, and n processes admit n times as much.
//
// # In Redis or PostgreSQL
//
// [Over] returns a limiter whose buckets are in a store that processes share:
//
//	limiter, err := redisstore.NewLimiter(ctx, "redis://127.0.0.1:6379?prefix=shop:", matcher)
//	logins, err := keyed.Over(limiter.Store(), "10/1m", 20)
//	…
//	allowed, err := logins.Allow(ctx, address)
//
// Its methods take a context and return an error, because a store can fail. An error is
// never an admission: the caller decides whether the work may go on. The store sees hashes
// of the keys only: see [Shared].
//
// # More than that
//
// Several limits on one request, all of them or none, tiers, and policies in files are in
// package mete. There are recipes in examples.
package keyed
