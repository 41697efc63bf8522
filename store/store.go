// SPDX-License-Identifier: Apache-2.0

// Package store is the contract between a limiter and the store that keeps its buckets.
//
// A program that uses a store needs none of it: package mete has these types under the
// same names. A program that implements a store imports this package, and checks its
// implementation with package storetest.
package store

import (
	"context"
	"time"

	"github.com/metehq/mete/bucket"
)

// A Store keeps bucket states, and with them the time: whoever shares the state
// shares the clock. It is safe for concurrent use.
//
// What it is asked is valid: keys are distinct, in ascending order and at most
// [MaxKeyBytes] long, which the policy sees to, costs are between 0 and
// [bucket.MaxTokens], and there are at most [MaxCharges] of them. A store knows
// keys, limits and costs, never rules. Package storetest checks an
// implementation.
//
// A store may have more methods: those of [Documents], [KeyDeriver], [Pinger],
// [Transactional], [Partial] and [Wrapper].
type Store interface {
	// Take charges every bucket, or none of them, in one step that no other
	// call can interleave with and in at most one round trip. It appends to dst
	// one snapshot for each charge, in order, and reports whether all were
	// allowed. A denied take writes nothing, but for the account of a limit that the
	// bucket has not had yet: see [bucket.Row]. [Mode] has the variants.
	//
	// The caller uses charges and dst again: a store that needs them after it has returned,
	// also after an error, copies them first. Keys may be kept.
	//
	// An error means that the store could not decide. [Spent] of it says
	// whether tokens may have been spent.
	Take(ctx context.Context, dst []bucket.Snapshot, charges []Charge, mode Mode) ([]bucket.Snapshot, bool, error)

	// Refund gives tokens back, to all buckets in one step. Keys are distinct, in
	// ascending order. A bucket never exceeds its capacity.
	//
	// An ID, if not empty, names the refund; IDs of takes are apart. Within
	// [RetryHorizon] a refund with the same ID and keys gives nothing more. [Spent] of
	// an error reports whether something may have been given back. A store that cannot
	// give all of it back in one step reports [NotSpent] only if it gave back nothing.
	Refund(ctx context.Context, refunds []Refund, id string) error

	// Reset makes buckets full, all of them in one step.
	Reset(ctx context.Context, keys []string) error
}

// A Charge is what one bucket is asked for.
type Charge struct {
	Key   string
	Limit bucket.Limit  // as it holds for Key: see [bucket.Limit.For]
	Cost  bucket.Tokens // 0 spends nothing, and is denied only while something is owed

	// Shards, above 1, splits the bucket over so many keys. The limiter does so: a
	// store is given 0.
	Shards int

	// Fixed keeps the cost as it is when a reservation is settled: for what a
	// request costs whatever comes of it. A store does not look at it.
	Fixed bool

	// Leased lets the store spend from tokens that it took from the bucket in
	// advance: see package redisstore. Bounds hold all the same, and a store that
	// takes nothing in advance does not look at it.
	Leased bool
}

// A Refund is what one bucket gets back: the Cost of its Charge.
type Refund struct {
	Charge

	// Taken, unless zero, is the take that is canceled. The bucket then gets back at most
	// what keeps the bound: see [bucket.Limit.Cancel]. A take is canceled once. Without
	// it the refund is an administrator's, and only the capacity bounds it.
	Taken bucket.Taken
}

// Mode modifies a take. The zero Mode spends now or denies.
type Mode struct {
	// MaxWait admits a cost that the buckets will have refilled within it, as a
	// debt: see [bucket.Limit.Reserve]. [bucket.Forced] admits all that can be
	// owed.
	MaxWait time.Duration

	// DryRun decides without charging.
	DryRun bool

	// UpTo takes a part where there is not all of it: from every bucket the same
	// amount, [bucket.UpTo] of its cost and of what the emptiest bucket holds.
	// The snapshots' Cost says how much. It does not go with MaxWait.
	UpTo bool

	// ID, if not empty, names the take. Where a take with this ID was admitted for
	// the same keys within [RetryHorizon], it is answered again as it was, and not
	// charged again; costs make no difference, as the IDs that a limiter gives
	// tell them apart. Denials are decided anew. A store remembers a bounded number
	// of takes, and forgets the oldest. It makes no difference to a DryRun.
	ID string

	// Fresh has the store itself asked, where something in front of it remembers what it
	// answered lately: for people who look at a bucket.
	Fresh bool

	// Within, above 0, is the longest that the caller waits. A store that is asked
	// over a network answers with an error then; one in memory does not look at it.
	Within time.Duration
}

const (
	// MaxKeyBytes bounds the length of a bucket key. A policy keeps its keys
	// below it by hashing long components.
	MaxKeyBytes = 1088

	// MaxCharges bounds the buckets that one request can charge. A policy under
	// which a request could need more does not compile.
	MaxCharges = 64

	// MaxIDBytes bounds the ID of a request. A [Mode.ID] may be longer by 17.
	MaxIDBytes = 128

	// RetryHorizon is how long an admitted take is remembered by its ID.
	RetryHorizon = 2 * time.Minute
)
