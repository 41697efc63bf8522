// SPDX-License-Identifier: Apache-2.0

// Package memstore keeps buckets in the memory of one process: exact, bounded,
// and fast enough to ask on every call.
//
// A bucket is 24 bytes in an array without pointers, found by a 128-bit hash of
// its key under a secret of the process, of which 112 bits are kept. The key
// itself is not, and the garbage collector has nothing to scan however many
// buckets there are.
//
// Deciding about one bucket that is there takes no lock: its state is one 64-bit
// word that is replaced by compare-and-swap, and a denial only reads. Several
// buckets at once are marked busy one by one, charged all or none, and never
// waited for: a take that finds one busy lets go of the others. New buckets, refunds,
// resets and whatever is rare go under the locks of their shards, taken in one order.
// The store is strictly serializable.
//
// Some buckets do not fit a slot. They are kept beside their shard, under its lock,
// and their takes cost microseconds in place of 50 ns:
//
//   - keys with accounts of two or three versions of a limit ([bucket.Row]), until the
//     accounts of all but one are full: about 350 bytes each. A key whose traffic stays
//     above the rate of its old limit keeps the old account for as long. Beside a
//     sliding log, each take copies the log;
//   - sliding logs: 16 bytes for each cost in their window. It is the one limit whose
//     buckets take more memory the more they admit;
//   - buckets of a limit that got no number. A slot names its limit by a number, of
//     which there are 65,536. Numbers that no slot names are taken back.
//
// There is no background work. A full bucket and an absent one are the same
// thing, so full buckets are left behind when a shard grows, and a new key may
// take the place of one.
//
// # At the bound
//
// A store holds at most [Config.MaxKeys] buckets. When it does, and none of
// those it can look at is full, new keys share one overflow bucket for each
// limit: no bucket that is not full is ever dropped, so a flood of keys cannot
// make the store forget a caller who is being limited. [Stats.Overflowed]
// counts the takes that were decided there. A key that gets a bucket of its own
// while the overflow bucket is not yet full starts with what is missing there:
// it may have been the one who spent it. So does a key that is asked for under another
// version of its limit. Three things are given up then: a limit whose numbers change
// gets another overflow bucket, which is full, so that versions that alternate admit
// the sum of their bounds; a dry run does not see that several of its keys would share
// one; and a refund to a key that was charged there gives nothing back. There are at
// most 65,536 overflow buckets. A limit without one is denied until there is room.
//
// # Restarts
//
// A store ends with its process, and every bucket of a new one is full, unless
// [Store.Save] has written it to a file and [Restore] reads that. A file of another
// version of the format is an error, and not an empty store.
package memstore
