// SPDX-License-Identifier: Apache-2.0

// Package topkeys finds the keys that a limiter denies most, per rule, in bounded memory. The limiter's hooks
// feed a [Tracker]:
//
//	top, err := topkeys.New(topkeys.Config{}, bucket.At(time.Now()))
//	…
//	limiter, err := mete.New(store, rules, mete.Config{
//		OnDenial:    func(_ context.Context, d *mete.Denial) { top.Denied(bucket.At(time.Now()), d) },
//		OnNearLimit: func(_ context.Context, d *mete.Denial) { top.OnNearLimit(bucket.At(time.Now()), d) },
//	})
//
// [Tracker.Top] then returns, for one rule and one [Kind], the keys with the most records in the last minute.
//
// # Guarantees
//
// With N records in the time range of a [List] and m counters, in any order of the records:
//
//   - Every key with more than N/m records is in the list.
//   - No count is too low, and none is too high by more than its Error, which is at most N/m. The true number is
//     between Count − Error and Count.
//   - No key outside the list has more than [List.Unlisted] records, which is at most N/m, and 0 while there are
//     free counters.
//
// This holds for every stream of keys. Even an adversary can evict only keys with fewer than N/m records. There
// are two exceptions, both visible in the results. If more than [Lanes] records of a rule are made at the same
// moment, some are dropped: [List.Dropped] bounds the missing records of any key. And at [MaxBytes] there are
// fewer counters: Error and Unlisted remain correct but are larger.
//
// # Algorithm
//
// The package uses the stream summary of Metwally, Agrawal and El Abbadi (2005). The paper is "Efficient
// Computation of Frequent and Top-k Elements in Data Streams". Updates are O(1): a key without a counter takes
// over the counter with the lowest count and continues from there. A summary covers half a window and is dropped
// when it is older than a window, so that lists are current. A list merges the summaries of several halves, and
// of the lanes for concurrent records; their errors and their N add up.
//
// Keys are found by a hash with a random seed.
package topkeys
