// SPDX-License-Identifier: Apache-2.0

// Package bucket implements the arithmetic of token buckets, windows, logs and leaky buckets as pure functions
// over plain values. It has no clock and does no I/O. The caller passes the current instant and the bucket's
// state, and stores the returned state.
//
// A [Limit] is a capacity and a refill rate. A [State] is the stored part of one bucket, and the zero State is
// a full bucket. [Limit.Take] spends tokens, [Limit.Peek] only reads, [Limit.Reserve] spends future tokens,
// [Limit.Refund] returns tokens, and [TakeAll] charges several buckets or none. Each decision is a [Snapshot].
//
// # Exactness
//
// All numbers are integers. Tokens are counted in thousandths ([Tokens]) and time in microseconds ([Instant]). A
// limit refills n thousandths every p microseconds, with n/p in lowest terms. The state counts the missing amount in
// units of 1/p thousandth. A microsecond refills exactly n units, and a cost of c thousandths is exactly c·p units.
// The state is therefore never rounded, and division happens only for display. All intermediate values stay below
// 2^53, so Lua scripts (doubles) and SQL functions (bigint) compute the same numbers.
//
// The arithmetic guarantees:
//
//   - In any interval of length t a token bucket admits at most capacity + rate·t.
//   - A cost is admitted after exactly [Snapshot.RetryAfter] if nothing else is taken, and one microsecond earlier it
//     is denied.
//   - A cost that can never fit gets [Never].
//   - Time never runs backwards inside a bucket: an instant before the last one counts as the last one. A sliding
//     window stores only the start of its window, so an earlier instant within the window counts as it is. The
//     decision is then at least as strict.
//   - A denied take does not change the state.
package bucket
