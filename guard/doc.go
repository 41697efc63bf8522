// SPDX-License-Identifier: Apache-2.0

// Package guard provides a circuit breaker between a limiter and a remote store. A [Store] is a [mete.Store] that
// wraps another store, and rejects calls immediately while that store is failing.
//
// # Circuit breaker
//
// The breaker counts the calls that the store did not answer. It opens after [Config.Failures] consecutive
// failures. It also opens if at least half of the calls since the first failure fail. That requires [MinCalls] calls
// within [Window]. Calls then fail immediately, with a [*mete.StoreError] of [mete.NotSpent] that wraps
// [store.ErrUnavailable]. After [Config.OpenFor], the breaker admits a few calls as probes. It closes if all
// [Config.Probes] succeed, and opens again at the first failure.
//
// Only a missing answer counts as a failure. An expired [mete.Mode.Within] counts, and a canceled call does not.
// Neither does [store.ErrOverloaded], because the store still serves other calls. A caller's own deadline counts
// if it left the store at least [MinDeadline]. Impatient callers alone thus cannot open the breaker, and they cannot
// hide a hanging store. A [mete.Mode.Within] below MinDeadline counts only if no call was answered for that long.
// A rule with a short timeout thus cannot open the breaker for others. The store must end every call, because a
// half-open breaker waits for its probes.
//
// # Transactions
//
// A call in the caller's transaction (see pgstore.WithTx) uses the transaction's connection, and the caller can
// roll it back. The guard passes such a call to the store in every state, and ignores its outcome.
package guard
