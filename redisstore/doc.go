// SPDX-License-Identifier: Apache-2.0

// Package redisstore keeps buckets in Redis, so that all processes with one Redis
// limit together: one server, one behind Sentinel, or a cluster, from Redis 6.2 on,
// and whatever speaks its language.
//
//	matcher, err := policyyaml.LoadFile("policy.yaml") // or policy.Load, of JSON
//	limiter, err := redisstore.NewLimiter(ctx, "redis://127.0.0.1:6379?prefix=shop:", matcher)
//	…
//	defer limiter.Close()
//	decision, err := limiter.Take(ctx, mete.Request{Attributes: mete.Attrs{"header:x-api-key": key}})
//
// [NewLimiter] connects, and puts a circuit breaker before Redis. During an outage it
// decides in memory for rules with on_store_error: local, and charges Redis afterwards.
// All processes with one Redis and prefix share their buckets, and hash parts of bucket
// keys with one secret that Redis keeps: see [Store.DeriveKey]. examples/redis is a program
// with it. keyed.Over(limiter.Store(), "10/1m", 20) is a limit by key without a policy.
//
// [Open] and [Node.NewLimiter] are for other settings. [New] takes a client that the program
// has already.
//
// # One script, one round trip
//
// However many limits a request falls under, they are charged by one call of one
// script, all of them or none. It reads the time from Redis, so that no other clock
// matters, and it is the arithmetic of package bucket in integers that Lua's
// numbers hold exactly: what a take is told is what any other store would tell it,
// to the microsecond. The script only decides and writes. What a decision shows
// is worked out here, from the states as they were, and compared with what the
// script decided.
//
// While as many calls are on the wire as pay, takes that arrive wait for the next
// one and go with it, in their order, each by itself all or nothing. Nobody waits
// where nothing is on the wire. How many calls pay shows in how long they take: on
// a long line many, on a busy server two.
//
// # Keys
//
// A bucket is a string at prefix + "tb:" + its key, such as
//
//	2:20000+1/10 SPENT ASOF
//
// The format is version 2. The limit holds 20000 thousandths and refills 1 in 10
// microseconds. SPENT units of the limit, here tenths of a thousandth token, are missing
// at ASOF, in microseconds since 1970. Each is a double of 8 bytes, the lowest byte
// first, and no space is between them. Format version 1 is text, and has the other
// algorithms. While a limit changes, it has a line for each version of the limit, up to
// three: see [bucket.Row]. doc/redis.md has the forms. A value of another version,
// or of no version, is an error, and never taken for a full bucket.
//
// A key expires a second or two after the bucket is full under all of its limits, when
// nobody can tell, and without traffic nothing is left in Redis. Under [Config.Now] it
// lives for an hour instead.
//
// # Clusters
//
// Buckets of one slot are charged by one script. Where a request's buckets are in
// several slots they are charged one slot after another in ascending order, and
// canceled when a later one denies or fails: again and again until Redis has heard
// it, once, or the buckets are full anyway. The bound holds, as a cancellation gives
// back nothing that has refilled meanwhile: see [bucket.Limit.Cancel]. Another request
// may be denied until then. A refund of several slots is completed in the same way; its
// error is [mete.MaybeSpent] while some slots have not answered. A hash tag in keys
// (slot_by in a policy) or in [Config.Prefix] keeps buckets together.
//
// # Leases
//
// A charge that is [mete.Charge.Leased] may be spent from tokens that the store has
// taken in advance, a tenth of the capacity at most (see [Config.LeaseShare]), as
// many as this process has lately needed. What is lent is missing from the bucket
// however long it is held, so that the bound is exact. A lease belongs to the version
// of the limit that it was taken under. What is not spent goes back
// after some tenths of a second and with [Store.Close]; a crash loses it.
//
// # Errors
//
// Errors are [mete.StoreError]. What Redis refuses has not been done
// ([mete.NotSpent]); where the answer was lost it may have been
// ([mete.MaybeSpent]), and it is not tried again here. With a [mete.Mode.ID] the
// caller can.
package redisstore
