// SPDX-License-Identifier: Apache-2.0

// Package mete gives out by measure: a rate limiter with exact token buckets,
// windows, logs and leaky buckets.
//
// A [Limiter] keeps its buckets in a [Store] (package memstore is one in the
// memory of the process) and decides by a policy (package policy), by limits that
// the program names itself in [Request.Charges], or by both at once.
//
// # Which call
//
//	one limit, many keys, one line of code       package keyed
//	yes or no, now                               Limiter.Take
//	as much as there is                          Limiter.TakeUpTo
//	look, without spending                       Limiter.Peek
//	sleep until it may happen                    Limiter.Wait
//	say when it may happen, without sleeping     Limiter.Take with Request.MaxWait
//	the cost is known only afterwards            Limiter.Reserve, Reservation.Settle
//	it has happened already                      Limiter.Charge
//	it did not happen after all                  Limiter.Refund, Reservation.Cancel
//	make a bucket full by hand                   Limiter.Reset
//	a retry must not be charged twice            any that spends, with Request.ID
//	several limits with different keys           any of them: all are charged, or none
//
// Most callers want Take. Who knows golang.org/x/time/rate: its Allow is Take, its
// Wait is [Limiter.Wait], and its Reserve is [Limiter.Reserve] with a
// [Request.MaxWait] of [bucket.Never]. Behind net/http, use the middleware of
// package httplimit, the decision API of package httpapi or the reverse proxy of
// package proxy.
//
// A denial is a [Decision], never an error. An error means that no decision
// could be made.
//
// # When the store does not answer
//
// A store that can be far away has a deadline ([policy.Rule], [Config.Deadline]),
// and what happens then is for the rules to say: let the request through, refuse
// it, or decide by buckets of this process until the store is back
// ([Config.Local]). The decision is [Decision.Degraded], and [Limiter.Stats] counts.
//
// # What is promised
//
// In any interval of length t a token bucket admits at most capacity + rate·t
// tokens, under any concurrency; package bucket says the same of the other
// algorithms. A request that falls under several limits is charged by all of them
// or by none. A denial changes nothing. [Decision.RetryAfter] is true: a caller
// who is alone and waits that long is admitted, and a microsecond earlier it is
// denied; a cost that can never fit says [bucket.Never]. A rule in shadow changes
// nothing that anybody else can observe. A broken policy never replaces a working
// one. Keys are never logged.
//
// What is not: with a store that forgets (for memstore, a process that restarts
// and has not saved it), buckets are full again. Each process with a memory store
// limits by itself.
package mete
