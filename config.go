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

// Config holds the optional settings of a [Limiter].
type Config struct {
	// OnDecision, if set, is called once with every decision of Take, TakeUpTo, Wait, Reserve and Charge,
	// before the method returns. Use it for metrics and logs: see [LogDecisions]. It must not block, and must
	// not change or retain the decision.
	OnDecision func(context.Context, *Decision)

	// OnDenial, if set, is called after OnDecision if the request is denied, or if a shadow rule would deny it.
	// It also gets the request's attributes, for an audit log. It must not block or change the denial, and may
	// retain only strings of it.
	OnDenial func(context.Context, *Denial)

	// OnNearLimit, if set, is called after OnDenial if the request is admitted and one of its limits is nearly
	// reached: see [Status.Near]. The restrictions of OnDenial apply.
	OnNearLimit func(context.Context, *Denial)

	// OnSettlement, if set, is called for each limit that [Reservation.Finish] settles by a response. It must not block
	// or change the settlement. [Reservation.FinishSoon] may call it after the request has ended.
	OnSettlement func(context.Context, *policy.Settlement)

	// OnHold, if set, is called with the result of each call of Hold, Settle, Release and Renew, before the method
	// returns. It must not block. Decisions of Hold also go to OnDecision. op is "hold", "settle", "release" or "renew".
	//
	// The result of a hold is "opened", "denied", or "unheld" if no bucket has a hold. Other results are "settled" and
	// "renewed", "repeated" after an earlier settlement, "expired", "unknown", "debt" if a limit cannot owe the excess,
	// and "error".
	OnHold func(ctx context.Context, op, result string)

	// Scale, if set, raises costs, so that limits adapt to the health of the protected service. It is called
	// with every cost above 0, and must be fast and safe for concurrent use. The limiter never charges less
	// than the original cost. It never raises a cost above the largest one that the limit can admit in one request.
	// Refund and Reset do not scale.
	Scale func(cost bucket.Tokens) bucket.Tokens

	// OnStoreError selects the decision for [Request.Charges] if the store does not answer. The zero value
	// allows the request. Rules have their own setting.
	OnStoreError policy.OnStoreError

	// Deadline is the store's time limit for [Request.Charges]. It must be between [policy.MinDeadline] and
	// [policy.MaxDeadline]; 0 means [policy.DefaultDeadline]. Rules have their own deadlines, and the shortest
	// deadline of a request applies. The limiter passes it to the store as [Mode.Within].
	Deadline time.Duration

	// Local decides during an outage if a rule or OnStoreError is set to local. It is required in that case.
	// Use a store in the memory of this process, such as a memstore, and share it with nothing else.
	//
	// A local bucket has the limit's capacity and rate divided by the number of nodes. It starts with its share of
	// the last known deficit, and withholds the cost of requests in flight. After the outage, the limiter charges
	// the local costs to the store before it takes from the same key again. Local buckets ignore shards and leases,
	// and the store does not know the IDs of requests that they admitted.
	//
	// [Limiter.Stats] counts the cost of an outage, and doc/architecture.md bounds it.
	Local Store

	// Nodes returns the number of processes that share the store, including this one. The limiter calls it when
	// an outage first needs a local bucket. It must be fast and safe for concurrent use. If Nodes is nil or
	// returns less than 1, the number is 1: each process then admits up to the whole limit during an outage.
	Nodes func() int

	// OnClose, if set, is called once by [Limiter.Close]. A constructor that opens connections closes them here.
	OnClose func() error

	// DenyFor bounds how long the limiter repeats a denial of the store from memory, without a call. With 0, every
	// request goes to the store. A bucket refills at a known rate, so a denial stays valid until a known time.
	//
	// The limiter sees its own refunds and resets. Tokens that arrive in another way take effect after at most
	// DenyFor. Other processes, a new policy elsewhere and the end of a lease can add such tokens. One second
	// suits a remote store. DenyFor must not be negative.
	//
	// The memory answers only requests that take all of their cost now or nothing. Requests with an ID or a
	// [Request.MaxWait], limits with shards, transactions of the caller, and [Limiter.TakeUpTo],
	// [Limiter.Charge] and [Limiter.Wait] always go to the store. The memory also denies during an outage. It
	// does not see the costs of other processes, so a denial can show too many tokens and too short a wait.
	DenyFor time.Duration

	// DenyKeys bounds the number of remembered denials, at about 200 bytes per key. It must be between 0 and
	// 67,108,864; 0 means 16,384. At the bound, the limiter evicts the denials that end first. Local adds room
	// for 65,536 more keys.
	DenyKeys int

	// DenyExactly calls the store if a denial from memory would show fewer tokens than the store. This affects
	// sliding logs and leased limits.
	DenyExactly bool

	// Now is the clock for the expiry of overrides and for the age of remembered store answers. Set it for
	// tests and recorded traffic. If it is nil, overrides use the wall clock, and remembered answers use the
	// process's monotonic clock. Stores have their own clocks.
	Now func() bucket.Instant
}

const (
	defaultDenyKeys = 1 << 14
	maxDenyKeys     = 1 << 26
)

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
	if c.OnStoreError == policy.OnStoreErrorLocal && c.Local == nil {
		wrong = append(wrong, errors.New("OnStoreError: OnStoreErrorLocal requires Config.Local"))
	}
	return errors.Join(wrong...)
}
