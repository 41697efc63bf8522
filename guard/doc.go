// SPDX-License-Identifier: Apache-2.0

// Package guard is a circuit breaker between a limiter and a store that can be far away. It
// is a [mete.Store] around another one, which it does not ask while that one is ill.
//
// # While the store is ill
//
// The breaker counts the calls that the store did not answer. It opens
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
// # In a transaction
//
// A call in the caller's transaction, as by pgstore.WithTx, uses the connection of that
// transaction, and the caller may roll it back. The guard passes it on, whatever the
// breaker's state. Neither its result nor its failure counts.
package guard
