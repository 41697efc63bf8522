// SPDX-License-Identifier: Apache-2.0

// Package mete gives out by measure: a rate limiter with exact token buckets,
// windows, logs and leaky buckets.
//
// A [Limiter] keeps its buckets in a [Store]: in memory, Redis or PostgreSQL. It decides
// by a policy (package policy), by limits that the program names itself in
// [Request.Charges], or by both at once.
//
// # Which call
//
//	limit a handler by address, in memory        httplimit.PerAddress("100/1m", 20).Wrap(h)
//	limit keys of any kind, in memory            keyed.Must("10/1m", 20), Allow(key)
//	limit keys over a shared store               keyed.Over(store, "10/1m", 20)
//	a policy over Redis or PostgreSQL            redisstore.NewLimiter, pgstore.NewLimiter
//	a policy in memory                           New(memstore, matcher, Config{})
//	load a policy                                policyyaml.LoadFile, policy.Load
//	limit a route, a gRPC method                 httplimit.Must, grpclimit.New
//
// and then, of a [Limiter]:
//
//	yes or no, now                               Take
//	as much as there is                          TakeUpTo
//	look, without spending                       Peek
//	sleep until it may happen                    Wait
//	say when it may happen, without sleeping     Take with Request.MaxWait
//	the cost is known only afterwards            Reserve, Reservation.Settle
//	it has happened already                      Charge
//	it did not happen after all                  Refund, Reservation.Cancel
//	make a bucket full by hand                   Reset
//	a retry must not be charged twice            any that spends, with Request.ID
//	several limits with different keys           any of them: all are charged, or none
//
// Most programs need Take. In the terms of golang.org/x/time/rate, Allow is Take, Wait is
// [Limiter.Wait], and Reserve is [Limiter.Reserve] with a [Request.MaxWait] of
// [bucket.Never]. Package httpapi is a decision API over HTTP, and package proxy a reverse
// proxy.
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
