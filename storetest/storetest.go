// SPDX-License-Identifier: Apache-2.0

// Package storetest checks implementations of [mete.Store].
//
// [Run] puts a store through the shared vectors, compares it with [Naive] over
// long random runs, and makes many goroutines compete for its tokens. Whoever
// writes a store calls it from a test:
//
//	func TestStore(t *testing.T) {
//		storetest.Run(t, func(t *testing.T, now func() bucket.Instant) mete.Store {
//			return mystore.New(mystore.Config{Now: now})
//		})
//	}
package storetest

import (
	"testing"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
)

// Open returns a new, empty store that asks now for the time. It may be called
// often; what it opens, it closes by t.Cleanup. The clock may stand still and
// step back. It is safe for concurrent use.
type Open func(t *testing.T, now func() bucket.Instant) mete.Store

// Run checks the stores that open returns, one subtest for each rule of the
// contract. The subtests say which promise is broken.
func Run(t *testing.T, open Open) {
	for _, rule := range []struct {
		name  string
		check func(*testing.T, Open)
	}{
		{"vectors", vectorsHold},
		{"a new bucket is full", newBucketIsFull},
		{"a denied take changes nothing", deniedChangesNothing},
		{"a dry run changes nothing", dryRunChangesNothing},
		{"all buckets or none", allOrNone},
		{"many buckets", manyBuckets},
		{"snapshots come in order, appended", snapshotsAppend},
		{"never is not a number", neverIsNever},
		{"a refund never exceeds the capacity", refundIsBounded},
		{"a reset bucket is full", resetIsFull},
		{"a changed limit keeps what is missing", limitChanges},
		{"the wait is exact under every algorithm", retryIsExact},
		{"every algorithm refunds", refundsEveryAlgorithm},
		{"a forced charge goes into debt", forcedGoesIntoDebt},
		{"all or none of every algorithm", allOrNoneOfEveryAlgorithm},
		{"up to takes what is there", upToTakesWhatIsThere},
		{"up to takes the same of all", upToTakesTheSameOfAll},
		{"an ID is charged once", idChargesOnce},
		{"an ID names a take of its keys", idNamesOneTake},
		{"the ID of a denial is free", idOfADenialIsFree},
		{"an ID makes no dry run", idMakesNoDryRun},
		{"an ID expires", idExpires},
		{"an ID is charged once, by many at a time", idChargesOnceAtATime},
		{"agrees with the model", agreesWithModel},
		{"conserves tokens under concurrency", conserves},
		{"serializes takes of several buckets", serializes},
	} {
		t.Run(rule.name, func(t *testing.T) { rule.check(t, open) })
	}
}
