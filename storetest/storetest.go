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
	for _, r := range rules {
		t.Run(r.name, func(t *testing.T) { r.check(t, open) })
	}
}

// RunInParts checks stores that take several buckets one after another, and give
// back what had been taken when one denies, as a store must whose buckets live on
// several servers. What that leaves behind need not be what was there to the
// microsecond, so that only takes of one bucket are compared with the model.
func RunInParts(t *testing.T, open Open) {
	for _, r := range rules {
		if r.oneStep {
			r.name, r.check = r.name+", one by one", agreesWithModelOneByOne
		}
		t.Run(r.name, func(t *testing.T) { r.check(t, open) })
	}
}

// A rule is one of the contract's.
type rule struct {
	name    string
	check   func(*testing.T, Open)
	oneStep bool // it can tell what is denied from what is given back
}

var rules = []rule{
	{"vectors", vectorsHold, false},
	{"a new bucket is full", newBucketIsFull, false},
	{"a denied take changes nothing", deniedChangesNothing, false},
	{"a dry run changes nothing", dryRunChangesNothing, false},
	{"all buckets or none", allOrNone, false},
	{"many buckets", manyBuckets, false},
	{"snapshots come in order, appended", snapshotsAppend, false},
	{"never is not a number", neverIsNever, false},
	{"a refund never exceeds the capacity", refundIsBounded, false},
	{"a reset bucket is full", resetIsFull, false},
	{"a changed limit keeps what is missing", limitChanges, false},
	{"versions of a limit keep their bounds", versionsKeepTheirBounds, false},
	{"a change keeps what is missing", changeKeepsWhatIsMissing, false},
	{"an ended override leaves an empty bucket", endedOverrideLeavesAnEmptyBucket, false},
	{"canceled takes keep the bound", canceledTakesKeepTheBound, false},
	{"a refund with an ID is given once", refundWithAnIDIsGivenOnce, false},
	{"the wait is exact under every algorithm", retryIsExact, false},
	{"every algorithm refunds", refundsEveryAlgorithm, false},
	{"a forced charge goes into debt", forcedGoesIntoDebt, false},
	{"all or none of every algorithm", allOrNoneOfEveryAlgorithm, false},
	{"up to takes what is there", upToTakesWhatIsThere, false},
	{"up to takes the same of all", upToTakesTheSameOfAll, false},
	{"an ID is charged once", idChargesOnce, false},
	{"an ID names a take of its keys", idNamesOneTake, false},
	{"the ID of a denial is free", idOfADenialIsFree, false},
	{"an ID makes no dry run", idMakesNoDryRun, false},
	{"an ID expires", idExpires, false},
	{"an ID is charged once, by many at a time", idChargesOnceAtATime, false},
	{"agrees with the model", agreesWithModel, true},
	{"conserves tokens under concurrency", conserves, false},
	{"serializes takes of several buckets", serializes, false},
}
