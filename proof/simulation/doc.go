// SPDX-License-Identifier: Apache-2.0

// Package simulation runs several nodes with the real limiter in one process. One seed decides everything: the requests,
// the order of all messages between nodes and store, lost requests and answers, crashes, partitions, and the clocks. A
// failure is therefore repeated by its seed, and shrunk to a few steps.
//
// The real code of limiter, reservations, holds, slots, recovery, leases and memstore runs in a bubble of
// testing/synctest. Only the network is simulated: each call of the store is a message, which the schedule delivers,
// delays, or loses in either direction. Transactions are simulated, too: one at a time has the store for itself, and a
// rollback repeats all other operations in a new memstore.
//
// # Checks
//
// A ledger, which shares no code with the product, records what the store executed and what callers were told:
//
//   - G1: in any interval, a bucket admits at most capacity + rate·t, after all settlements. Leased buckets too. A node
//     that has the store for itself keeps the bound in an outage. A bucket has one limit per policy.
//   - G2: an admitted request was charged to each of its buckets, and a denied one to none. A request with an ID
//     was charged once, also if its charges came in another order.
//   - G3: after RetryAfter a request is admitted, and a microsecond earlier it is denied.
//   - G5: a changed limit keeps the missing tokens and the debt. A full bucket is full under the new limit.
//   - G8: a request that the store did not answer is marked as degraded.
//   - G13: at any instant, at most max callers hold an unexpired slot. All slots are free at the end.
//   - Conservation: without refill, the tokens that the store misses are exactly those of admitted requests, less
//     settlements, releases, expired holds and refunds. After an outage, each local token is charged once.
//   - Each call returns.
//
// Redis, PostgreSQL and their scripts are not simulated. Package history tests the real ones.
package simulation
