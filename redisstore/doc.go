// SPDX-License-Identifier: Apache-2.0

// Package redisstore keeps buckets in Redis, so that all processes that use one Redis share their limits. Redis
// can be one server, a server behind Sentinel, or a cluster. It needs Redis 6.2 or later, or a compatible server.
//
//	matcher, err := policyyaml.LoadFile("policy.yaml") // or policy.Load, of JSON
//	limiter, err := redisstore.NewLimiter(ctx, "redis://127.0.0.1:6379?prefix=shop:", matcher)
//	…
//	defer limiter.Close()
//	decision, err := limiter.Take(ctx, mete.Request{Attributes: mete.Attrs{"header:x-api-key": key}})
//
// [NewLimiter] connects, and puts a circuit breaker in front of Redis. During an outage, rules with
// on_store_error: local are decided in memory, and Redis is charged afterwards. All processes with one Redis and
// prefix share their buckets. They hash parts of bucket keys with one secret that Redis keeps: see
// [Store.DeriveKey]. The program in examples/redis shows this. For a limit by key without a policy, use
// keyed.Over(limiter.Store(), "10/1m", 20).
//
// Use [Open] and [Node.NewLimiter] for other settings. [New] takes an existing client.
//
// # One script, one round trip
//
// One call of one script charges all limits of a request, or none of them. The script reads the time from Redis,
// so the clocks of clients do not matter. It computes like package bucket, in integers that Lua's numbers hold
// exactly: each store returns the same answer, to the microsecond. The script only decides and writes. The client
// computes the details of a decision from the states before the take, and compares the result with the script's
// decision.
//
// A take is sent immediately while few calls are in flight. Otherwise it waits for the next call, which carries
// all waiting takes in their order. Each take is still all or nothing. The store derives the number of concurrent
// calls from their latency: many on a slow network, two on a busy server.
//
// # Keys
//
// A bucket is a string at prefix + "tb:" + its key, such as
//
//	2:20000+1/10 SPENT ASOF
//
// The format is version 2. The limit holds 20000 thousandths and refills 1 in 10 microseconds. At ASOF, in
// microseconds since 1970, SPENT units of the limit are spent; a unit is a tenth of a thousandth token here. Both
// numbers are doubles of 8 bytes, little-endian, with no space between them. Format version 1 is text. It
// stores the other algorithms, and limits that are changing. Such a row has a line per version of the limit, up
// to three (see [bucket.Row]). doc/redis.md documents the formats. A value of an unknown version is an error; it
// never counts as a full bucket.
//
// A key expires one or two seconds after the bucket is full under all of its limits, so expiry changes no
// decision. Without traffic, Redis ends up empty. Under [Config.Now], a key expires after an hour.
//
// # Clusters
//
// One script charges the buckets of one slot. The buckets of several slots are charged one slot after another, in
// ascending order. If a later slot denies or fails, the store cancels the earlier charges. It retries the
// cancellation until Redis confirms it, or until the buckets are full anyway. No limit is exceeded, because a
// cancellation returns no tokens that have already refilled: see [bucket.Limit.Cancel]. Until then, another
// request may be denied. A refund of several slots is completed in the same way; its error is [mete.MaybeSpent]
// while some slots have not answered. To keep buckets together, use a hash tag in keys (slot_by in a policy) or
// in [Config.Prefix].
//
// # Leases
//
// A charge with [mete.Charge.Leased] can be spent from tokens that the store took in advance. A lease holds as
// many tokens as this process recently needed, and at most a tenth of the capacity (see [Config.LeaseShare]).
// Leased tokens count as spent for as long as they are held, so the bound is exact. A lease belongs to one
// version of the limit. The store returns unspent tokens after some tenths of a second, and on [Store.Close]; a
// crash loses them.
//
// # Errors
//
// Errors of takes, refunds and resets are of type [*mete.StoreError]. A call that Redis rejects has spent nothing
// ([mete.NotSpent]). If the answer is lost, the call may have spent tokens ([mete.MaybeSpent]). The store does
// not retry such a call; the caller can, with a [mete.Mode.ID].
package redisstore
