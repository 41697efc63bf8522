// SPDX-License-Identifier: Apache-2.0

// Package lease is a node's side of leases: tokens that a store lends to a node,
// which spends them without asking. A bucket that is charged often costs the store
// a call every now and then, not one a request.
//
// A [Borrower] takes slices of hot buckets in advance, as large as the node's own
// demand, and gives back what it does not need. The store's side is a [Lender];
// what it has to do is said there.
//
// # Bounds hold
//
// What is lent has been charged to the bucket. It is written down there, too: as
// long as X tokens are lent, the bucket does not refill above capacity − X. The
// node holds no more than is written down, and stops spending before the store
// stops counting. So what the bucket holds and what the nodes hold is together
// never more than what the bucket would hold if every request had been taken from
// it directly:
//
//   - a loan, a return and a direct take change both sides alike,
//   - refill is cut off at capacity − X here and at capacity there,
//   - what a node loses is missing here only.
//
// Hence all that is admitted, by whichever node, is within capacity + rate·t in
// any interval, exactly.
//
// Loans last by two clocks. The node counts [Config.TTL] on its own from before it
// asked, the store counts TTL + Grace from when it answered. A store whose clock
// jumps ahead by more than Grace, or that forgets what it has acknowledged,
// forgives what is lent at that moment, once: at most N·s as below. One that jumps
// back makes entries last longer, which is no harm.
//
// # Worst under-use
//
// With s = [Config.Share] of the capacity and N nodes that hold an entry in the
// bucket (a crashed one does for TTL + Grace):
//
//   - Charged and not spent are at most N·s, at any time. That is out of reach for
//     other nodes.
//   - Against a bucket from which every request is taken directly, the store's
//     bucket misses at most 2·N·s + L: N·s that the nodes hold, N·s that did not
//     come back because refill was cut off above what had been lent, and spent
//     since, and the losses L.
//   - A crash loses what the node held of each bucket: at most s. So does a node
//     that cannot reach the store for TTL + Grace. Both are missing until the
//     bucket is full. A grant whose answer is lost comes back with the next loan,
//     less what was spent meanwhile if it overtook one.
//   - What is not used comes back: a slice that has not been needed for two periods
//     is given back at the next tick, after three periods and a round trip at
//     most. Over time all of the rate is there for whoever asks.
//
// [Stats] has the node's part of it, where N is 1.
package lease
