// SPDX-License-Identifier: Apache-2.0

// Package pgstore keeps buckets in PostgreSQL 14 or later, for those whose data is
// there already: every algorithm, any number of buckets in one take, all of them or
// none.
//
//	matcher, err := policyyaml.LoadFile("policy.yaml") // or policy.Load, of JSON
//	limiter, err := pgstore.NewLimiter(ctx, "postgres://mete@127.0.0.1/shop?schema=mete", matcher)
//	…
//	defer limiter.Close()
//	decision, err := limiter.Take(ctx, mete.Request{Attributes: mete.Attrs{"header:x-api-key": key}})
//
// [NewLimiter] connects, makes missing tables, and puts a circuit breaker before
// PostgreSQL. During an outage it decides in memory for rules with on_store_error: local,
// and charges PostgreSQL afterwards. examples/postgres is a program with it.
// keyed.Over(limiter.Store(), "10/1m", 20) is a limit by key without a policy.
//
// [Open] and [Node.NewLimiter] are for other settings. [Migrate] and [New] take a pool that
// the program has already.
//
// # Takes
//
// A take is one statement, and takes that come while a call is on its way go together
// in the next one: there is one round trip and one commit for all of them, each with
// its own outcome, in the order in which they came. A take that is alone goes at once.
// Time is clock_timestamp() of the server, and inside a bucket it never runs back. A take
// that waits for a lock is decided by the time after the wait.
// The arithmetic is that of package bucket, in bigint; each decision is compared with
// what that package decides, and one that differs is an [AnswerError].
//
// Statements lock the rows they change in the order of their keys, so that they never
// block each other in a circle. Where denials are likely they look first, and neither
// lock nor write anything for those. A bucket that a transaction of somebody's keeps
// locked is waited for by those who ask for it, and not by others.
//
// A row holds an account for each version of its key's limit that is in use, up to
// [bucket.MaxAccounts]: see [bucket.Row]. A row in a format that this package does not
// know is an error until the key is reset. It is never a full bucket.
//
// # Transactions
//
// [Store.TakeTx] makes a take a part of the caller's transaction: it is charged if that
// is committed. With [WithTx] a [mete.Limiter] does so.
//
// # The key of the hashes
//
// All processes with one schema and prefix hash parts of bucket keys with the same key:
// see [Store.DeriveKey].
//
// # What is kept
//
// By default buckets are in an UNLOGGED table. It is there after the server has been
// stopped in order, and empty after a crash, a failover and a restore: at most one
// capacity of each bucket is forgiven each time. With [Config.Durable] the table is a
// logged one, which survives these as the rest of the database does. Only buckets that
// are not full have a row; others are removed a few at a time, beside all takes.
//
// # Errors
//
// They are a [mete.StoreError]. What PostgreSQL refuses has been undone: it is
// NotSpent. Where a connection is lost or an answer does not come in time, nobody
// knows: that is MaybeSpent, and is never tried again here. A statement that PostgreSQL
// has undone for another's sake is tried again.
//
// # Sessions and poolers
//
// Nothing depends on the session, its search_path included, and everything works through PgBouncer in transaction
// mode. Statements are prepared where they can be, which is faster, and are not any
// more once that has turned out not to work; default_query_exec_mode=exec in the URL
// says so from the start.
package pgstore
