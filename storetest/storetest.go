// SPDX-License-Identifier: Apache-2.0

// Package storetest tests implementations of [mete.Store].
//
// [Run] replays the shared vectors, compares the store with [Model] in long random runs, and races many
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

// Run tests the stores that open returns. Each subtest is named after a guarantee of the contract. With go test
// -short, slow random tests draw a third of the cases.
func Run(t *testing.T, open Open) {
	for _, r := range rules {
		t.Run(r.name, func(t *testing.T) { r.check(t, open) })
	}
}

// RunBriefly is [Run] for a second way to access a store, such as a connection pooler or a user with fewer
// privileges. With go test -short, slow random tests draw few cases.
func RunBriefly(t *testing.T, open Open) {
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
			r.name, r.check = r.name+", one by one", r.singly
		}
		t.Run(r.name, func(t *testing.T) { r.check(t, open) })
	}
}

// A rule is one guarantee of the contract.
type rule struct {
	name    string
	check   func(*testing.T, Open)
	oneStep bool                   // requires that a denied take leaves no trace
	singly  func(*testing.T, Open) // check with one bucket per take, of a rule with oneStep
	brief   func(*testing.T, Open) // check with few seeds or pairs, of a slow rule
}

var rules = []rule{
	{name: "vectors", check: checkVectors},
	{name: "a new bucket is full", check: checkNewBucket},
	{name: "a denied take changes nothing", check: checkDenial},
	{name: "a dry run changes nothing", check: checkDryRun},
	{name: "all buckets or none", check: checkAllOrNone},
	{name: "many buckets", check: checkManyBuckets},
	{name: "snapshots are appended in order", check: checkSnapshotOrder},
	{name: "an impossible cost waits forever", check: checkNever},
	{name: "a refund never exceeds the capacity", check: checkRefundBound},
	{name: "a reset bucket is full", check: checkReset},
	{name: "a changed limit keeps the deficit", check: checkLimitChange},
	{name: "versions of a limit keep their bounds", check: checkVersionBounds, brief: checkSomeVersionBounds},
	{name: "every change of a limit keeps the deficit", check: checkChangeKeepsDeficit},
	{name: "an ended override leaves an empty bucket", check: checkEndedOverride},
	{name: "canceled takes keep the bound", check: checkCancellationBound},
	{name: "a refund with an ID is applied once", check: checkRefundID},
	{name: "the wait is exact under every algorithm", check: checkExactRetry},
	{name: "every algorithm refunds", check: checkRefunds},
	{name: "a forced charge goes into debt", check: checkForcedDebt},
	{name: "all or none with every algorithm", check: checkAllOrNoneOfEveryAlgorithm},
	{name: "UpTo takes the available tokens", check: checkUpTo},
	{name: "UpTo takes the same amount from all buckets", check: checkUpToOfSeveral},
	{name: "an ID is charged once", check: checkIDChargesOnce},
	{name: "an ID identifies a take together with its keys", check: checkIDAndKeys},
	{name: "the ID of a denied take can be reused", check: checkIDOfDenial},
	{name: "a dry run ignores its ID", check: checkIDOfDryRun},
	{name: "an ID expires", check: checkIDExpiry},
	{name: "an ID is charged once under concurrency", check: checkConcurrentIDs},
	{name: "agrees with the model", check: checkModel, oneStep: true, singly: checkModelSingly, brief: checkModelBriefly},
	{name: "agrees with the model about calendars", check: checkCalendars, oneStep: true, singly: checkCalendarsSingly, brief: checkCalendarsBriefly},
	{name: "conserves tokens across the windows of a calendar", check: checkCalendarConservation},
	{name: "slots are held until they are released or end", check: checkSlots},
	{name: "held slots are listed", check: checkSlotList},
	{name: "a changed limit applies to held slots", check: checkChangedSlots},
	{name: "slots and buckets are taken together", check: checkSlotsWithBuckets},
	{name: "attempts with one ID hold one slot", check: checkSlotIDs},
	{name: "a reset frees all slots", check: checkResetSlots},
	{name: "never more holders than slots", check: checkSlotBound},
	{name: "never more unexpired slots than the limit while time passes", check: checkSlotExpiry},
	{name: "slots agree with the model", check: checkSlotModel, oneStep: true, singly: checkSlotModelSingly, brief: checkSlotModelBriefly},
	{name: "conserves tokens under concurrency", check: checkConservation},
	{name: "serializes takes of several buckets", check: checkSerialization},
}
