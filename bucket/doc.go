// SPDX-License-Identifier: Apache-2.0

// Package bucket is the arithmetic of mete's token buckets: pure functions
// over plain values. It has no clock, does no I/O and allocates nothing: the
// instant is an argument, the state goes in and comes out.
//
// A [Limit] is a capacity and a refill rate. A [State] is what one bucket
// remembers between two requests, and the zero State is a full bucket.
// [Limit.Take] spends tokens, [Limit.Peek] only looks, [Limit.Reserve] spends
// tokens that are still to come, [Limit.Refund] gives back, and [TakeAll]
// charges several buckets or none of them. Each answers with a [Snapshot].
//
// # Exactness
//
// All numbers are integers. Tokens are counted in thousandths ([Tokens]), time
// in microseconds ([Instant]). A limit refills n thousandths every p
// microseconds, n/p in lowest terms, and the state counts what is missing in
// units of 1/p thousandth: a microsecond refills exactly n of those units and
// a cost of c thousandths is exactly c·p of them. So nothing is ever rounded
// in the state; division happens only to show numbers. Every intermediate
// value stays below 2^53, so that a Lua script (doubles) and an SQL function
// (bigint) compute the same numbers.
//
// What follows from that:
//
//   - In any interval of length t a bucket admits at most capacity + rate·t.
//   - A caller who is alone and waits exactly [Snapshot.RetryAfter] is
//     admitted; one microsecond earlier it is denied.
//   - A cost that can never fit is answered with [Never], not with a number.
//   - Time never runs backwards inside a bucket: an instant before the last
//     one is treated as the last one. (A sliding window, which remembers no
//     instant but its beginning, judges one within it as it stands: no milder.)
//   - A denied take leaves the state as it was.
package bucket
