// SPDX-License-Identifier: Apache-2.0

// Package simulation runs several nodes with the real limiter in one process. A seed decides the schedule: the requests,
// the order of all messages between nodes and store, lost requests and answers, crashes, partitions, and the clocks. A
// failure is therefore repeated by its seed, and shrunk to a few steps. There is one exception: takes that wait for the same
// charge of local costs continue in an order that Go decides. A few seeds in a thousand depend on it.
//
// # Real and simulated code
//
// Limiter, reservations, holds, slots, recovery, memstore, the division among shards and the borrower of leases are the real
// code. They run in a bubble of testing/synctest.
//
// The network is simulated: each call of the store is a message, which the schedule delivers, delays, or loses in either
// direction. Transactions are simulated, too: one at a time has the store for itself, and a rollback repeats all other
// operations in a new memstore.
//
// The lender of leases is leasetest.Bank, a reference in plain Go for tests. The scripts of Redis implement the same again,
// and TestLending_IsAsTheBookSays in redisstore compares them with it. A bug of one of them is not a bug of the other.
//
// Redis, PostgreSQL and their scripts are not simulated, nor is the code of redisstore that takes, undoes and refunds in
// parts. Package history tests the real stores. In the world of shards, nothing is canceled or refunded. In the world of
// leases, the clock of the store jumps by at most what leases tolerate.
//
// # Checks
//
// A ledger records what the store executed and what callers got as answers. It adds up costs and instants by arithmetic of
// its own. It uses types of the product and reads limits by their methods. It also trusts three values of an answer: the
// instant of a take, its wait, and the cost of a partial take. If one of these is wrong, the ledger can miss a bug.
//
//   - G1: in any interval, a bucket admits at most capacity + rate·t, after all settlements. Leased buckets too. A node
//     that has the store for itself keeps the bound in an outage. A bucket has one limit per policy.
//   - G2: an admitted request was charged to each of its buckets, and a denied one to none. A request with an ID
//     was charged once, also if its charges came in another order. A repetition changes no bucket.
//   - G3: after RetryAfter a request is admitted, and a microsecond earlier it is denied.
//   - G5: a changed limit keeps the missing tokens and the debt. A full bucket is full under the new limit.
//   - G8: a request that the store did not answer is marked as degraded.
//   - G13: at any instant, at most max callers hold an unexpired slot. All slots are free at the end.
//   - Conservation: without refill, the tokens that the store misses are exactly those of admitted requests, less
//     settlements, releases, expired holds and refunds. A cancellation in debt may return less. After an outage, each local token is charged once.
//   - Each call returns.
//   - Each world reaches the events that it exists for, such as leased tokens or charges after an outage.
package simulation
