// SPDX-License-Identifier: Apache-2.0

package mete

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/policy"
)

// Config are a [Limiter]'s optional settings.
type Config struct {
	// OnDecision, if set, is called with every decision of Take and Wait before
	// it is returned: for metrics and logs. It must not change the decision,
	// must not block, and must not keep it.
	OnDecision func(context.Context, *Decision)
}

// A Limiter decides requests by a policy, with its buckets in a store. It is
// safe for concurrent use, starts no goroutine and needs no Close.
type Limiter struct {
	store  Store
	config Config
	policy atomic.Pointer[policy.Matcher]
}

// New returns a limiter that keeps its buckets in store and decides by m. Both
// are required.
func New(store Store, m *policy.Matcher, config Config) (*Limiter, error) {
	if store == nil {
		return nil, errors.New("mete: new: store is required")
	}
	l := &Limiter{store: store, config: config}
	if err := l.SetPolicy(m); err != nil {
		return nil, err
	}
	return l, nil
}

// Store returns the limiter's store.
func (l *Limiter) Store() Store { return l.store }

// Policy returns the policy in force.
func (l *Limiter) Policy() *policy.Matcher { return l.policy.Load() }

// SetPolicy replaces the policy in one step, also while requests are decided:
// each request is decided by one policy. Buckets keep what is missing from them.
func (l *Limiter) SetPolicy(m *policy.Matcher) error {
	if m == nil {
		return errors.New("mete: set policy: policy is required")
	}
	l.policy.Store(m)
	return nil
}

// Take spends the request's cost from all limits it falls under, or from none.
// A request that falls under no limit is allowed.
//
// A denial is a [Decision], not an error. An error says that the request is
// invalid or that ctx is done. A store that cannot answer is no error either:
// the decision is then what the rules say about it, and [Decision.Degraded].
func (l *Limiter) Take(ctx context.Context, req Request) (Decision, error) {
	d, err := l.decide(ctx, req, Mode{MaxWait: req.MaxWait})
	if err == nil && l.config.OnDecision != nil {
		l.report(ctx, d)
	}
	return d, err
}

// report calls the hook with a copy, so that decisions without a hook need not
// live on the heap.
func (l *Limiter) report(ctx context.Context, d Decision) { l.config.OnDecision(ctx, &d) }

// Peek decides as [Limiter.Take] would, and spends nothing.
func (l *Limiter) Peek(ctx context.Context, req Request) (Decision, error) {
	return l.decide(ctx, req, Mode{MaxWait: req.MaxWait, DryRun: true})
}

// Wait takes, and sleeps until the tokens are there. They are spent at once, so
// callers proceed in the order in which they asked, none sleeps longer than it
// must, and one whose context ends while it sleeps gives its tokens back.
//
// Wait ends with nil when the request may go ahead. It does not begin to sleep
// where that cannot help: the error is [ErrNever] where the cost can never be
// admitted, and [ErrDeadlineTooSoon] where the wait would outlast ctx's
// deadline or [Request.MaxWait]. A rule that refuses for another reason, such
// as a missing attribute or a store that cannot answer, gives [ErrRefused].
func (l *Limiter) Wait(ctx context.Context, req Request) (Decision, error) {
	longest := bucket.Never
	if deadline, ok := ctx.Deadline(); ok {
		longest = max(time.Until(deadline), 0)
	}
	if req.MaxWait <= 0 || req.MaxWait > longest {
		req.MaxWait = longest
	}
	d, err := l.Take(ctx, req)
	switch {
	case err != nil:
		return d, err
	case !d.Allowed:
		return d, d.waitError(req)
	case d.Wait == 0:
		return d, nil
	}
	timer := time.NewTimer(d.Wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return d, nil
	case <-ctx.Done():
		err := l.giveBack(context.WithoutCancel(ctx), &d)
		return d, errors.Join(context.Cause(ctx), err)
	}
}

// waitError says why a denied request is not waited for.
func (d *Decision) waitError(req Request) error {
	if d.Degraded || len(d.Limits) == 0 {
		return fmt.Errorf("%w: rule %q: %s", ErrRefused, d.Rule, d.Reason)
	}
	for i := range d.Limits {
		if s := &d.Limits[i]; s.Cost > s.Snapshot.Limit.Capacity()+s.Snapshot.Limit.MaxReserved() {
			return fmt.Errorf("%w: rule %q", ErrNever, s.Rule.Name)
		}
	}
	return fmt.Errorf("%w: rule %q: longest wait %v", ErrDeadlineTooSoon, d.Rule, req.MaxWait)
}

// Refund gives the request's cost back to every limit it falls under. A bucket
// never holds more than its capacity: what exceeds it is gone.
func (l *Limiter) Refund(ctx context.Context, req Request) error {
	s, err := l.match(req)
	if err != nil {
		return err
	}
	defer s.release()
	return l.store.Refund(ctx, s.charge(s.matches))
}

// Reset makes every bucket that the request falls under full.
func (l *Limiter) Reset(ctx context.Context, req Request) error {
	s, err := l.match(req)
	if err != nil {
		return err
	}
	defer s.release()
	var keys []string
	for _, c := range s.charge(s.matches) {
		keys = append(keys, c.Key)
	}
	return l.store.Reset(ctx, keys)
}

// giveBack refunds what an allowed decision spent.
func (l *Limiter) giveBack(ctx context.Context, d *Decision) error {
	slices.SortFunc(d.charges, func(a, b Charge) int { return strings.Compare(a.Key, b.Key) })
	return l.store.Refund(ctx, d.charges)
}
