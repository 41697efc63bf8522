// SPDX-License-Identifier: Apache-2.0

// Package mete gives out by measure: a rate limiter with exact token buckets.
//
// A [Limiter] decides requests by a policy (package policy) and keeps its
// buckets in a [Store]: package memstore is one in the memory of the process.
//
// # Which method
//
//   - [Limiter.Take] spends tokens now or says no. It is what most callers want.
//   - [Limiter.Wait] takes, and sleeps until the tokens are there: for workers
//     that would rather be late than refused.
//   - [Limiter.Take] with [Request.MaxWait] reserves: it says when the work may
//     start, and does not sleep.
//   - [Limiter.Peek] looks without spending, [Limiter.Refund] gives back what
//     turned out not to be needed, [Limiter.Reset] makes a bucket full.
//
// A program that limits by keys and needs no policy asks its store itself:
// memstore's TakeOne is one call, and allocates nothing.
//
// For net/http there are the middleware of package httplimit, the decision API
// of package httpapi and the reverse proxy of package proxy.
//
// # What is promised
//
// In any interval of length t a bucket admits at most capacity + rate·t tokens,
// under any concurrency. A request that falls under several limits is charged by
// all of them or by none. A denial changes nothing. [Decision.RetryAfter] is
// true: a caller who is alone and waits that long is admitted, and a microsecond
// earlier it is denied; a cost that can never fit says [bucket.Never]. A rule in
// shadow changes nothing that anybody else can observe. A broken policy never
// replaces a working one.
//
// What is not: with a store that forgets (a process that restarts, for
// memstore), buckets are full again. Each process with a memory store limits by
// itself.
//
// A denial is a [Decision], never an error. An error means that no decision
// could be made.
package mete
