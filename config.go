// SPDX-License-Identifier: Apache-2.0

package mete

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/policy"
)

// Config are a [Limiter]'s optional settings.
type Config struct {
	// OnDecision, if set, is called with every decision of Take, TakeUpTo, Wait,
	// Reserve and Charge, once, before it is returned: for metrics and logs, see
	// [LogDecisions]. It must not change the decision, must not block, and must not
	// keep it.
	OnDecision func(context.Context, *Decision)

	// OnDenial, if set, is called with what OnDecision is, after it, where the
	// request is denied or a shadow rule would deny it: for an audit trail, as it is
	// told who was denied. It costs nothing where the request is allowed. It must not
	// change what it is given, must not block, and may keep nothing of it but strings.
	OnDenial func(context.Context, *Denial)

	// OnNearLimit, if set, is called with what OnDecision is, after OnDenial, where
	// the request is admitted and one of its limits is nearly reached: see
	// [Status.Near]. What is said of OnDenial goes for it, too.
	OnNearLimit func(context.Context, *Denial)

	// Scale, if set, raises costs: for limits that adapt to how the protected
	// thing is doing, with any store. It is called with every cost above 0, and
	// must be fast and safe for concurrent use. What it returns is charged, but no
	// less than the cost, and of a cost that the limit can admit at once no more
	// than that. Refund and Reset do not scale.
	Scale func(cost bucket.Tokens) bucket.Tokens

	// OnStoreError says what becomes of requests that bring charges when the store
	// cannot answer. The zero value lets them through. Rules say so themselves.
	OnStoreError policy.OnStoreError

	// Deadline is how long the store may take for them: between
	// [policy.MinDeadline] and [policy.MaxDeadline], or 0 for
	// [policy.DefaultDeadline]. Rules have deadlines of their own, and the shortest
	// of a request's counts. The limiter tells the store: see [Mode.Within].
	Deadline time.Duration

	// Local is the store that decides in its place where rules, or OnStoreError,
	// say local: one in the memory of this process, such as a memstore, that
	// nothing else uses. It is required if any of them does. Its buckets have the
	// limit's capacity and rate divided by the number of nodes, and begin with
	// their part of what this limiter last knew to be missing, and without what it
	// has in flight. When the store answers again, what was spent here is charged
	// there before anybody takes from the same key. Shards make no difference to it, nor do leases; IDs that
	// it has admitted the store does not know.
	//
	// [Limiter.Stats] counts what that costs, and doc/architecture.md says what it
	// can.
	Local Store

	// Nodes says how many processes share the store, this one included, for the
	// local buckets. It is asked when one of them is first needed in an outage, and
	// must be fast and safe for concurrent use. Below 1 is 1, and so is nil: then
	// each process admits up to the whole limit while it is alone.
	Nodes func() int

	// OnClose, if set, is what [Limiter.Close] does, once: for a function that makes a
	// limiter with all that it needs.
	OnClose func() error

	// DenyFor is how long the limiter denies a bucket from memory after the store has
	// denied it, without a call of the store; 0: every request goes to the store. A bucket
	// refills at a known rate, so the store is sure to deny until a known time. The limiter
	// sees its own refunds and resets. Tokens that the bucket gets in another way wait for
	// DenyFor at most: by another process, a policy elsewhere, or the end of a lease. One
	// second suits a store that is asked over a network. It must not be negative.
	//
	// The memory answers only requests that spend all of their cost now or nothing, and
	// have no ID: no [Limiter.TakeUpTo], [Limiter.Charge], [Limiter.Wait] or
	// [Request.MaxWait], no limits with shards, and nothing in a caller's transaction. It
	// also denies while the store does not answer. Costs of other processes are not in it,
	// so a denial can show too many tokens and too short a wait.
	DenyFor time.Duration

	// DenyKeys bounds the buckets that are remembered for that, at some 200 bytes each:
	// between 0 and 67,108,864; 0 is 16,384. Beyond the bound, the limiter evicts the
	// denials that end first. With Local there is room for 65,536 more.
	DenyKeys int

	// DenyExactly has the store asked where the memory would show fewer tokens than the
	// store: for sliding logs, and for limits that are leased.
	DenyExactly bool

	// Now is the clock by which overrides expire, and by which the limiter knows how
	// old is what it last saw of a bucket, for tests and for recorded traffic. If
	// nil, it is the wall clock, and for the second of these the process's monotonic
	// one, set by it when the limiter is made. Stores have clocks of their own.
	Now func() bucket.Instant
}

const (
	defaultDenyKeys = 1 << 14
	maxDenyKeys     = 1 << 26
)

// complete fills in defaults, and returns everything that is wrong.
func (c *Config) complete() error {
	if c.Deadline == 0 {
		c.Deadline = policy.DefaultDeadline
	}
	var wrong []error
	if c.Deadline < policy.MinDeadline || c.Deadline > policy.MaxDeadline {
		wrong = append(wrong, fmt.Errorf("deadline %v: must be between %v and %v, or 0", c.Deadline, policy.MinDeadline, policy.MaxDeadline))
	}
	if c.DenyFor < 0 {
		wrong = append(wrong, fmt.Errorf("DenyFor %v: must not be negative", c.DenyFor))
	}
	if c.DenyKeys < 0 || c.DenyKeys > maxDenyKeys {
		wrong = append(wrong, fmt.Errorf("DenyKeys %d: must be between 0 and %d", c.DenyKeys, maxDenyKeys))
	}
	if c.DenyKeys == 0 {
		c.DenyKeys = defaultDenyKeys
	}
	if c.OnStoreError == policy.StoreErrorLocal && c.Local == nil {
		wrong = append(wrong, errors.New("OnStoreError is Local: set Config.Local"))
	}
	return errors.Join(wrong...)
}
