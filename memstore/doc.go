// SPDX-License-Identifier: Apache-2.0

// Package memstore is a store in the memory of one process: exact, bounded, and fast enough to call for every
// request.
//
// A bucket takes 24 bytes in an array without pointers, so the garbage collector has nothing to scan. The store
// finds a bucket by 112 bits of a hash of its key, under a secret of the process. It does not keep the key.
//
// A take from one existing bucket needs no lock: its state is one 64-bit word, replaced by compare-and-swap,
// and a denial only reads. A take from several buckets marks them busy one by one and charges all or none. It
// never waits: if one bucket is busy, it releases the others. New buckets, refunds, resets and rare cases use the
// locks of their shards in a fixed order. The store is strictly serializable.
//
// Some buckets do not fit a slot. They are in a map of their shard, and their takes cost microseconds instead
// of 50 ns:
//
//   - Keys with accounts of two or three versions of a limit ([bucket.Row]), until all accounts but one are full:
//     about 350 bytes each. A key with traffic above the rate of its old limit keeps the old account. If
//     one account is a sliding log, each take copies the log.
//   - Sliding logs: 16 bytes per cost in their window. The memory of all other limits is constant per bucket.
//   - Buckets of a limit without a number. A slot stores its limit as one of 65,536 numbers. The store reclaims unused
//     numbers.
//
// Keys under a penalty need 150 bytes more until it expires. The store holds at most MaxKeys penalties: at the bound, a
// denial starts none, and [Stats.Unpenalized] counts it.
//
// Slots of concurrency limits are in separate maps with their own locks: 24 bytes per slot, and about 150 per key.
//
// There is no background work. A full bucket is equivalent to an absent one, so a growing shard drops full
// buckets and a new key may replace one.
//
// # The MaxKeys bound
//
// A store holds at most [Config.MaxKeys] buckets. At the bound, the store looks for a full bucket to replace. If it
// finds none, [store.Charge.OnFull] decides. By default, new keys share one overflow bucket per limit. Otherwise they pass
// the limit, or the take is denied. The store never evicts a bucket that is not full, so a
// flood of new keys cannot reset a limited client. [Stats] counts these takes.
//
// While an overflow bucket is not full, a key that gets its own bucket starts with the overflow bucket's missing
// amount. The key may have spent it. The same applies to a key under a new version of its limit.
//
// The overflow mode has three limitations. A limit with new numbers gets a new, full overflow bucket, so
// alternating versions admit the sum of their bounds. A dry run does not see that several of its keys would
// share an overflow bucket. A refund to a key that was charged there does nothing. There are at most 65,536
// overflow buckets; takes under additional limits are denied.
//
// The same number bounds the slots of concurrency limits. Requests cannot share a slot: at the bound, the store denies new
// ones unless the charge has [store.OnFullOpen].
//
// # Restarts
//
// A new store starts with full buckets. To keep buckets across restarts, write them to a file with [Store.Save]
// and read it with [Restore]. Restore rejects a file of another format version.
package memstore
