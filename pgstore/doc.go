// SPDX-License-Identifier: Apache-2.0

// Package pgstore keeps buckets in PostgreSQL 14 or later, for programs that already use PostgreSQL. It supports
// every algorithm, and any number of buckets per take, all or nothing.
//
//	matcher, err := policyyaml.LoadFile("policy.yaml") // or policy.Load, of JSON
//	limiter, err := pgstore.NewLimiter(ctx, "postgres://mete@127.0.0.1/shop?schema=mete", matcher)
//	…
//	defer limiter.Close()
//	decision, err := limiter.Take(ctx, mete.Request{Attributes: mete.Attrs{"header:x-api-key": key}})
//
// [NewLimiter] connects, creates missing tables, and puts a circuit breaker in front of PostgreSQL. During an
// outage, rules with on_store_error: local are decided in memory, and PostgreSQL is charged afterwards. The
// program in examples/postgres shows this. For a limit by key without a policy, use keyed.Over(limiter.Store(),
// "10/1m", 20).
//
// Use [Open] and [Node.NewLimiter] for other settings. [Migrate] and [New] take an existing pool.
//
// # Takes
//
// A take is one statement. A single take is sent immediately. Takes that arrive while a call is in flight share
// the next call: one round trip and one commit for all. Each has its own outcome, in the order of arrival.
//
// The clock is the server's clock_timestamp(), and never runs backward inside a bucket. A take that waits for a
// lock is decided by the time after the wait. The database computes like package bucket, in bigint. The store
// repeats each decision with that package, and a difference is an [AnswerError].
//
// Statements lock rows in the order of their keys, so that they cannot deadlock. If denials are frequent, takes
// first read the rows, and a denied take then locks and writes nothing. If a transaction keeps a bucket locked,
// only takes from that bucket wait for it.
//
// A row holds an account per version of its key's limit in use, up to [bucket.MaxAccounts]: see [bucket.Row]. A
// row in an unknown format is an error until the key is reset; it never counts as a full bucket.
//
// # Transactions
//
// [Store.TakeTx] takes within the caller's transaction: the charge takes effect if the transaction commits.
// [WithTx] does the same for a [mete.Limiter].
//
// # Hash key
//
// All processes with one schema and prefix hash parts of bucket keys with the same key: see [Store.DeriveKey].
//
// # Durability
//
// By default, buckets are in an UNLOGGED table. It survives a clean shutdown, and is empty after a crash, a
// failover and a restore: each bucket is full then. With [Config.Durable], the table is logged and survives these
// like the rest of the database. Only buckets that are not full have a row. A sweep removes the rows of full
// buckets in small batches.
//
// # Errors
//
// Errors of takes, refunds and resets are of type [*mete.StoreError]. A statement that PostgreSQL rejects is
// rolled back: the error is NotSpent. If the connection is lost or the answer is late, the error is MaybeSpent,
// and the store does not retry. The store retries a statement that PostgreSQL rolled back because of a concurrent
// one.
//
// # Sessions and poolers
//
// No statement depends on the session, not even on its search_path, so PgBouncer in transaction mode works.
// Statements are prepared, which is faster, until a pooler turns out not to support it. To disable them from the
// start, set default_query_exec_mode=exec in the URL.
package pgstore
