// SPDX-License-Identifier: Apache-2.0

// Package store defines the interface between a limiter and the store of its buckets.
//
// Programs that use a store rarely need this package: mete aliases its types. Programs that implement a store
// import it, and test the implementation with package storetest.
package store

import (
	"context"
	"time"

	"github.com/metehq/mete/bucket"
)

// A Store keeps bucket states and provides the clock for them. It is safe for concurrent use.
//
// Callers pass valid arguments: keys are distinct, in ascending order and at most [MaxKeyBytes] long. Costs are
// between 0 and [bucket.MaxTokens], and there are at most [MaxCharges] of them. A store knows keys, limits and
// costs, but no rules.
//
// A store may also implement [Documents], [Clearer], [KeyDeriver], [KeyChecker], [Pinger], [Transactional],
// [Partial] and [Wrapper].
type Store interface {
	// Take charges every bucket or none in one atomic step, with at most one round trip. It appends one
	// snapshot per charge to dst, in order, and reports whether all were allowed. A denied take writes nothing
	// except the account of a new version of a limit, and the start of a penalty: see [bucket.Row] and
	// [bucket.Penalty]. [Mode] selects variants.
	//
	// The caller reuses charges and dst. A store that needs them after it has returned, even with an error,
	// must copy them. It may keep the keys.
	//
	// An error means that the store could not decide. [Spent] of the error reports whether tokens may have been
	// spent.
	Take(ctx context.Context, dst []bucket.Snapshot, charges []Charge, mode Mode) ([]bucket.Snapshot, bool, error)

	// Refund returns tokens to all buckets in one atomic step. Keys are distinct and in ascending order. A
	// bucket never exceeds its capacity.
	//
	// An ID, if not empty, identifies the refund, separately from the IDs of takes. Within [RetryHorizon] a
	// second refund with the same ID and keys does nothing. [Spent] of an error reports whether tokens may have
	// been refunded. A store without atomic refunds reports [NotSpent] only if it refunded nothing.
	Refund(ctx context.Context, refunds []Refund, id string) error

	// Reset fills the buckets in one atomic step.
	Reset(ctx context.Context, keys []string) error
}

// A Charge is a cost for one bucket.
type Charge struct {
	Key   string
	Limit bucket.Limit  // for Key: see [bucket.Limit.ForKey]
	Cost  bucket.Tokens // 0 spends nothing, and is denied only while the bucket is in debt

	// Shards, if above 1, splits the bucket over this many keys. The limiter does this: a store always gets 0.
	Shards int

	// Penalty, if not nil, lengthens denials by the limit: see [bucket.Penalty]. The store keeps the penalty of a key
	// beside its bucket, and checks and starts it in the same atomic step. A Reset ends it. A take with a MaxWait is
	// denied during a penalty and starts none. A forced take ignores it. Do not combine Penalty with Shards. A slot has no
	// penalty, and the denial of a slot neither starts nor prevents the penalty of a bucket.
	Penalty *bucket.Penalty

	// OnFull applies if the store has no space for the key. Stores without a bound on their keys ignore it.
	OnFull OnFull

	// Fixed excludes the cost from the settlement of a reservation. Stores ignore it.
	Fixed bool

	// Slot identifies the slot of a limit with [bucket.AlgorithmConcurrency]. Such a charge has the Cost of one token, or 0
	// to take no slot. A request that already holds the slot keeps it, and its lease starts again. A key of slots has
	// no other limits: a store may refuse it for a bucket.
	Slot bucket.SlotID

	// Leased allows the store to take tokens from the bucket in advance: see package redisstore. The limit's
	// bound still holds. Stores without leases ignore it.
	Leased bool

	// Await, if above 0, is the expected time until the caller cancels a part of an admitted take, at most MaxHoldTTL. The
	// store then remembers what such a cancellation may return: see [bucket.Row.WithAwait]. Without Await it returns
	// less, and nothing if the cost has refilled meanwhile. [Holder.Hold] ignores it.
	Await time.Duration
}

// A Refund returns the Cost of its Charge to one bucket. For a limit with [bucket.AlgorithmConcurrency] it releases the
// charge's Slot, whatever its Cost. A slot that is not held stays so.
type Refund struct {
	Charge

	// Taken, unless zero, is the take to cancel. The bucket then gets back at most the amount that keeps the
	// limit's bound: see [bucket.Limit.Cancel]. Cancel each take at most once. Without Taken it is an admin
	// refund, bounded only by the capacity.
	Taken bucket.Taken
}

// Mode modifies a take. The zero Mode spends now or denies.
type Mode struct {
	// MaxWait admits a cost that the buckets refill within this time, as a debt: see [bucket.Limit.Reserve].
	// [bucket.Forced] admits any cost within the debt limit.
	MaxWait time.Duration

	// DryRun decides without charging.
	DryRun bool

	// UpTo takes a part if the full cost is not available. Every bucket pays the same amount, computed by
	// [bucket.UpTo] from its cost and the content of the emptiest bucket. The snapshots' Cost is that amount. Do
	// not set both UpTo and MaxWait.
	UpTo bool

	// ID, if not empty, identifies the take. If a take with this ID and the same keys was admitted within
	// [RetryHorizon], the store repeats the answer and charges nothing. It does not compare costs: a limiter
	// encodes them in the ID. Denials are decided again, and so are takes with a slot that is no longer held. A store
	// remembers a bounded number of takes, and drops the oldest first. A dry run ignores the ID.
	ID string

	// Renew starts the leases of held slots again, and takes nothing. It is denied, with a wait of [bucket.Never], if one
	// of the slots is not held. All charges are for slots. Other variants do not apply.
	Renew bool

	// Fresh bypasses caches of recent answers, for the inspection of a bucket.
	Fresh bool

	// Within, if above 0, is the time limit of the caller. A remote store then returns an error. A store in
	// memory ignores it.
	Within time.Duration
}

const (
	// MaxKeyBytes bounds the length of a bucket key. A policy hashes long components to stay below it.
	MaxKeyBytes = 1088

	// PenaltyMark ends the keys under which remote stores keep penalties. Keys of buckets must not end with it.
	PenaltyMark = "|#penalty"

	// MaxCharges bounds the charges of one request. A policy that could exceed it does not compile.
	MaxCharges = 64

	// MaxIDBytes bounds the ID of a request. A [Mode.ID] may be 17 bytes longer.
	MaxIDBytes = 128

	// RetryHorizon is how long an admitted take is remembered by its ID.
	RetryHorizon = 2 * time.Minute
)
