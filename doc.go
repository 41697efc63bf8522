// SPDX-License-Identifier: Apache-2.0

// Package mete is a rate limiter with exact token buckets, windows, logs and leaky buckets.
//
// A [Limiter] keeps its buckets in a [Store]: in memory, Redis or PostgreSQL. It enforces a policy (package
// policy), limits that the program passes in [Request.Charges], or both.
//
// # Choosing a constructor
//
//	limit a handler per client address, in memory   httplimit.PerAddress("100/1m", 20).Wrap(h)
//	limit keys of any kind, in memory               keyed.Must("10/1m", 20), Allow(key)
//	limit keys in a shared store                    keyed.Over(store, "10/1m", 20)
//	enforce a policy over Redis or PostgreSQL       redisstore.NewLimiter, pgstore.NewLimiter
//	enforce a policy in memory                      New(memstore, matcher, Config{})
//	load a policy                                   policyyaml.LoadFile, policy.Load
//	limit an HTTP route or a gRPC method            httplimit.Must, grpclimit.New
//
// # Choosing a method of Limiter
//
//	decide now                                      Take
//	take as many tokens as available                TakeUpTo
//	decide without spending                         Peek
//	sleep until the request is admitted             Wait
//	get the waiting time instead of sleeping        Take with Request.MaxWait
//	reserve a cost, correct it after the work       Reserve, Reservation.Settle
//	charge for finished work                        Charge
//	give tokens back                                Refund, Reservation.Cancel
//	fill a bucket                                   Reset
//	retry without paying twice                      every spending method, with Request.ID
//	charge several keys atomically                  every method, with Request.Charges
//
// Most programs need only Take. If you know golang.org/x/time/rate: Allow corresponds to Take, Wait to
// [Limiter.Wait], and Reserve to [Limiter.Reserve] with a [Request.MaxWait] of [bucket.Never]. Package httpapi
// serves decisions over HTTP, and package proxy is a reverse proxy.
//
// A denial is a [Decision], never an error. An error means that the limiter could not decide.
//
// # Store outages
//
// A remote store has a deadline per call ([policy.Rule], [Config.Deadline]). If the store fails, each rule's
// on_store_error decides: allow the request, deny it, or use local buckets until the store is back
// ([Config.Local]). Such a decision is [Decision.Degraded], and [Limiter.Stats] counts it.
//
// # Guarantees
//
//   - In any interval of length t, a token bucket admits at most capacity + rate·t tokens, under any concurrency.
//     Package bucket documents the bounds of the other algorithms.
//   - A request pays all of its limits or none. A denial changes nothing.
//   - [Decision.RetryAfter] is exact: a request that waits that long is admitted if no other request takes the
//     tokens, and a microsecond earlier it is denied. A cost that can never fit gets [bucket.Never].
//   - Clients cannot observe shadow rules.
//   - An invalid policy never replaces a working one.
//   - Keys are never logged.
//
// If a store loses its data, buckets start full. A memstore loses its data at a restart without a saved copy. Each
// process with a store in memory enforces limits independently.
package mete
