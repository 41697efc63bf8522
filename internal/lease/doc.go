// SPDX-License-Identifier: Apache-2.0

// Package lease is a node's side of leases: tokens that a store gives to a node, which spends them without
// more calls. A hot bucket then costs the store an occasional call instead of one per request.
//
// A [Borrower] leases slices of hot buckets in advance, sized by the node's own demand, and returns unused
// tokens. The store's side is a [Lender], which documents the protocol.
//
// # Exact bounds
//
// Leased tokens are charged to the bucket. The store also records them: while X tokens are leased, the bucket
// does not refill above capacity − X. A node holds at most the recorded amount, and stops spending before the
// store stops counting. So the bucket and all nodes together never hold more than a bucket that every request is
// charged to directly. A loan, a return and a direct take change both sides alike. Refill stops at capacity − X
// with leases, and at capacity without. Tokens that a node loses are missing only with leases. Hence
// all nodes together admit at most capacity + rate·t in an interval, where t is its length.
//
// Two clocks measure a lease. The node counts [Config.TTL] from before its request, and the store counts TTL +
// Grace from its answer. The store's clock may jump ahead by more than Grace, or the store may lose acknowledged
// writes. The tokens leased at that moment can then be spent twice. That is at most N·s, as defined below. A
// backward jump only makes leases longer.
//
// # Worst-case under-use
//
// Let s be [Config.Share] of the capacity, and N the number of nodes with a lease on the bucket. A crashed node
// counts for TTL + Grace:
//
//   - At any time, at most N·s tokens are charged and not spent. Other nodes cannot use them.
//   - Compared with a bucket that is charged directly, at most 2·N·s + L tokens are missing. The nodes hold
//     N·s, another N·s did not refill while the first were leased, and L are the losses.
//   - A crash loses the tokens that the node held of each bucket, at most s. A node that cannot reach
//     the store for TTL + Grace loses them, too. They are missing until the bucket is full. If the answer to a loan is lost,
//     the next loan returns its tokens, less the tokens that were already spent.
//   - Unused tokens come back. If a slice was not needed for two periods, the next tick returns it. That takes at
//     most three periods and a round trip. In the long run, the whole rate is available.
//
// [Stats] has these numbers for one node, with N = 1.
package lease
