// SPDX-License-Identifier: Apache-2.0

// Package guard stands between a limiter and a store that can be far away. It is
// a [mete.Store] around another: while that one is ill it is not asked, and what
// it has just denied it is not asked again.
//
// # While the store is ill
//
// A circuit breaker counts the calls that the store did not answer. It opens
// after [Config.Failures] of them in a row, or when of at least [MinCalls] within
// [Window], from the first that failed on, half have. Calls then fail at once,
// with a [*mete.StoreError] that says [mete.NotSpent] and wraps
// [store.ErrUnavailable]. After [Config.OpenFor] a few calls are let through to
// see: if all of [Config.Probes] are answered it closes, and with the first that
// is not it is open again.
//
// What counts is that the store did not answer: a [mete.Mode.Within] that has
// passed does, a caller who has gone away does not, and nor does
// [store.ErrOverloaded], as others are served meanwhile. A deadline of the caller's
// own counts if it left the store [Patience], so that impatient callers alone
// cannot open the breaker, and a store that hangs cannot hide behind them. A
// [mete.Mode.Within] below Patience counts only where nobody has been answered for
// that long, so that a rule in a hurry cannot open it for the others. The store
// must see to it that every call ends: in the half-open state, calls that
// never do would be waited for.
//
// # What has just been denied
//
// Buckets only refill as time passes, at a known rate. So who knows what a bucket
// held a moment ago knows for how long it denies a cost, whoever else takes from
// it. The guard remembers the buckets of takes that were denied, as the store
// showed them, and denies in the store's place until their time has come:
//
//   - Time is counted from before the store was asked. If nobody gives the bucket
//     tokens, no take is denied that the store would admit.
//   - The waits that are shown count from when the store had answered, so that who
//     waits them out is admitted. They are longer than the store's own by one round
//     trip at most. Without a round trip, what is shown is what the store would
//     show, to the microsecond.
//   - What others take from a bucket meanwhile is not seen, so Remaining can be too
//     high and RetryAfter too short, as they can be behind any answer. Takes
//     through this Store are seen. Of a sliding log and of a leased bucket,
//     Remaining can be too low, by less than the cost: see [Config.ExactRemaining].
//   - [Store.Refund] and [Store.Reset] forget the buckets they are for, and a charge
//     with another limit is another question. Tokens that are given back elsewhere,
//     be it by a refund, a reset, another limit or a lease, a clock of the store's
//     that is set forward, and a refund that reaches the store after its call had
//     failed are seen only by asking: that is after [Config.MaxAge] at the latest.
//     In this one way a take can be denied although the store would admit it, for
//     no longer than that.
//
// Reservations and takes of a part ([mete.Mode.MaxWait], [mete.Mode.UpTo]) always
// go to the store, and so do takes with a [mete.Mode.ID], which the store may have
// admitted before, and those that are to be Fresh. What these see is remembered, too.
//
// Buckets that were denied are known even while the breaker is open.
//
// # In a transaction
//
// A call in the caller's transaction, as by pgstore.WithTx, uses the connection of that
// transaction, and the caller may roll it back. The guard passes it on, whatever the
// breaker's state. Neither its result nor its failure counts or is remembered.
package guard
