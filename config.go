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

	// Now is the clock by which overrides expire, and by which the limiter knows how
	// old is what it last saw of a bucket, for tests and for recorded traffic. If
	// nil, it is the wall clock, and for the second of these the process's monotonic
	// one, set by it when the limiter is made. Stores have clocks of their own.
	Now func() bucket.Instant
}

// complete fills in defaults, and reports what is wrong.
func (c *Config) complete() error {
	if c.Deadline == 0 {
		c.Deadline = policy.DefaultDeadline
	}
	if c.Deadline < policy.MinDeadline || c.Deadline > policy.MaxDeadline {
		return fmt.Errorf("deadline %v: must be between %v and %v, or 0", c.Deadline, policy.MinDeadline, policy.MaxDeadline)
	}
	if c.OnStoreError == policy.Local && c.Local == nil {
		return errors.New("OnStoreError is Local: set Config.Local")
	}
	return nil
}

// check returns the policy by which the limiter decides: m, with the key of its hashes.
// The error says why it cannot: better now than when the store first fails.
func (l *Limiter) check(m *policy.Matcher) (*policy.Matcher, error) {
	if m == nil {
		return nil, nil
	}
	for _, r := range m.Rules() {
		if l.config.Local == nil && r.OnStoreError == policy.Local && r.Mode < policy.Shadow {
			return nil, fmt.Errorf("rule %q says on_store_error: local: set Config.Local", r.Name)
		}
	}
	if m.NeedsHashKey() {
		key, err := l.HashKey()
		if err != nil {
			return nil, fmt.Errorf("policy hashes parts of bucket keys: %w", err)
		}
		m = m.WithHashKey(key)
	}
	return m, l.checkKey(m)
}
