// SPDX-License-Identifier: Apache-2.0

// Package storetest tests implementations of [mete.Store].
//
// [Run] replays the shared vectors, compares the store with [Naive] in long random runs, and races many
// goroutines for its tokens. Call it from a test of your store:
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

// Open returns a new, empty store with the clock now. Run calls it often. Open must close the store with
// t.Cleanup. The clock is safe for concurrent use, and may stand still and step back.
type Open func(t *testing.T, now func() bucket.Instant) mete.Store

// Run tests the stores that open returns. Each subtest is named after a guarantee of the contract.
func Run(t *testing.T, open Open) {
	for _, r := range rules {
		t.Run(r.name, func(t *testing.T) { r.check(t, open) })
	}
}

// RunAgain is [Run] for a second way to access a store, such as a connection pooler or a user with fewer
// privileges. With go test -short, slow random tests draw fewer cases.
func RunAgain(t *testing.T, open Open) {
	for _, r := range rules {
		if r.brief != nil && testing.Short() {
			r.check = r.brief
		}
		t.Run(r.name, func(t *testing.T) { r.check(t, open) })
	}
}

// RunInParts tests stores that take several buckets one after another and refund the earlier ones if one
// denies, such as stores over several servers. After such a refund a bucket may differ from its earlier state
// by microseconds. Only takes of one bucket are therefore compared with the model.
func RunInParts(t *testing.T, open Open) {
	for _, r := range rules {
		if r.oneStep {
			r.name, r.check = r.name+", one by one", agreesWithModelOneByOne
		}
		t.Run(r.name, func(t *testing.T) { r.check(t, open) })
	}
}

// A rule is one guarantee of the contract.
type rule struct {
	name    string
	check   func(*testing.T, Open)
	oneStep bool                   // requires that a denied take leaves no trace
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
