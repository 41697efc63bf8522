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

// RunAgain is [Run] for another way to a store that Run checks too, such as a pooler
// or a user with fewer rights. Under go test -short, slow random rules draw less.
func RunAgain(t *testing.T, open Open) {
	for _, r := range rules {
		if r.brief != nil && testing.Short() {
			r.check = r.brief
		}
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
	oneStep bool                   // it can tell what is denied from what is given back
	brief   func(*testing.T, Open) // check with few seeds or pairs, of a slow rule
}

var rules = []rule{
	{name: "vectors", check: vectorsHold},
	{name: "a new bucket is full", check: newBucketIsFull},
	{name: "a denied take changes nothing", check: deniedChangesNothing},
	{name: "a dry run changes nothing", check: dryRunChangesNothing},
	{name: "all buckets or none", check: allOrNone},
	{name: "many buckets", check: manyBuckets},
	{name: "snapshots come in order, appended", check: snapshotsAppend},
	{name: "never is not a number", check: neverIsNever},
	{name: "a refund never exceeds the capacity", check: refundIsBounded},
	{name: "a reset bucket is full", check: resetIsFull},
	{name: "a changed limit keeps what is missing", check: limitChanges},
	{name: "versions of a limit keep their bounds", check: versionsKeepTheirBounds, brief: someVersionsKeepTheirBounds},
	{name: "a change keeps what is missing", check: changeKeepsWhatIsMissing},
	{name: "an ended override leaves an empty bucket", check: endedOverrideLeavesAnEmptyBucket},
	{name: "canceled takes keep the bound", check: canceledTakesKeepTheBound},
	{name: "a refund with an ID is given once", check: refundWithAnIDIsGivenOnce},
	{name: "the wait is exact under every algorithm", check: retryIsExact},
	{name: "every algorithm refunds", check: refundsEveryAlgorithm},
	{name: "a forced charge goes into debt", check: forcedGoesIntoDebt},
	{name: "all or none of every algorithm", check: allOrNoneOfEveryAlgorithm},
	{name: "up to takes what is there", check: upToTakesWhatIsThere},
	{name: "up to takes the same of all", check: upToTakesTheSameOfAll},
	{name: "an ID is charged once", check: idChargesOnce},
	{name: "an ID names a take of its keys", check: idNamesOneTake},
	{name: "the ID of a denial is free", check: idOfADenialIsFree},
	{name: "an ID makes no dry run", check: idMakesNoDryRun},
	{name: "an ID expires", check: idExpires},
	{name: "an ID is charged once, by many at a time", check: idChargesOnceAtATime},
	{name: "agrees with the model", check: agreesWithModel, oneStep: true, brief: agreesWithModelBriefly},
	{name: "conserves tokens under concurrency", check: conserves},
	{name: "serializes takes of several buckets", check: serializes},
}
