// SPDX-License-Identifier: Apache-2.0

// Package topkeys finds the keys that a limiter denies most, rule by rule, in
// memory that no flood of keys makes grow. A [Tracker] is told by the limiter's hooks:
//
//	top, err := topkeys.New(topkeys.Config{}, bucket.At(time.Now()))
//	…
//	limiter, err := mete.New(store, rules, mete.Config{
//		OnDenial:    func(_ context.Context, d *mete.Denial) { top.Denied(bucket.At(time.Now()), d) },
//		OnNearLimit: func(_ context.Context, d *mete.Denial) { top.Near(bucket.At(time.Now()), d) },
//	})
//
// and answers [Tracker.Top]: of one rule and one [Kind], the keys that were counted
// most in the last minute.
//
// # What is guaranteed
//
// Of N records in the time that a [List] is about, with m counters, whatever the
// order in which they came:
//
//   - every key with more than N/m of them is in the list;
//   - no count is too low, and none is too high by more than its Error, which is at
//     most N/m: the true number is between Count − Error and Count;
//   - no key that is not in the list was recorded more than [List.Unlisted] times,
//     which is at most N/m, too, and 0 while there are counters to spare.
//
// So it is for every stream of keys, those of an adversary included, who can push only
// keys out of the list that are below N/m. Two things end the N/m, and both are
// counted and seen. Records are dropped rather than made to wait, where more than
// [Lanes] of them are made in the very same moment: [List.Dropped] is how many of any
// key may be missing. And where [MaxBytes] is used up, counters are fewer: Error and
// Unlisted stay true, but are more.
//
// # How
//
// It is the stream summary of Metwally, Agrawal and El Abbadi (Efficient Computation
// of Frequent and Top-k Elements in Data Streams, 2005), whose update is O(1): a key
// without a counter takes over the one with the lowest count, and goes on from there.
// A summary counts half a window, and is thrown away when it is older than a window, so
// that a list is of now. Summaries of several halves, and of the lanes in which
// records are made side by side, are put together in a list; their errors add up, and
// so do their N.
//
// Keys are found by a hash with a seed that nobody knows.
package topkeys
