// SPDX-License-Identifier: Apache-2.0

package mete

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/policy"
)

// An Explanation describes the decision that [Limiter.Take] would make now, rule by rule. It is a value. The
// caller must not change the memory it refers to.
type Explanation struct {
	// Decision is the result of Take. For sharded and leased limits, it shows the total over shards and leases;
	// a take selects the shard that pays.
	Decision Decision

	// At is the time of the explanation by the clock of [Config.Now]. All times in the explanation count from it.
	At bucket.Instant

	// Policy is the policy that decided, or nil if the limiter has none.
	Policy *policy.Matcher

	// ShadowOverride is the active override that puts every rule in shadow mode, or nil.
	ShadowOverride *policy.Override

	// Rules holds all rules in the order of the policy, with the effect of each. Rules after a rule with a blocked
	// bucket are omitted. There are no rules at all if an override decided the whole request.
	Rules []RuleResult

	// Charges holds the accounts of the request's own charges.
	Charges []Account
}

// A RuleResult is the result of one rule and its buckets.
type RuleResult struct {
	policy.Consideration
	Accounts []Account // one per element of Matches
}

// An Account is the part of one bucket in an explanation.
type Account struct {
	// Status is the bucket's status in the decision's Limits or Shadow, after an admitted request is charged.
	// If Asked is false, it holds only the limit and the cost.
	Status

	Before bucket.Snapshot // the current state: nothing is spent

	// Asked reports whether the bucket took part in the decision. Asked is false if the policy denied the request
	// without buckets, or for a shadow bucket if another limit denied. During an outage, only the buckets
	// of local rules take part.
	Asked bool
}

// Explain describes the decision that Take would make now, rule by rule. It spends nothing, writes no more than
// [Limiter.Peek], and calls no hook. It ignores [Request.ID]: a retry is explained as if it were the first attempt.
//
// Explain reads the store once for the enforced limits and once per shadow rule. The errors are the same as for
// Take, plus [ErrRequest] for a request with [Request.Parts].
func (l *Limiter) Explain(ctx context.Context, req Request) (Explanation, error) {
	if ctx.Err() != nil {
		return Explanation{}, contextError(ctx)
	}
	if len(req.Parts) > 0 {
		return Explanation{}, fmt.Errorf("%w: explain: parts are not supported: explain each part as a request of its own", ErrRequest)
	}
	e, err := l.evaluate(&req)
	if err != nil {
		return Explanation{}, err
	}
	defer e.release()
	x := Explanation{At: e.now, Policy: e.policy}
	if e.policy == nil || !e.policy.DependsOnTime() {
		x.At = l.now()
	}
	var d Decision
	if err := l.charge(ctx, e, &req, Mode{MaxWait: max(req.MaxWait, 0), DryRun: true}, nil, &d); err != nil {
		return Explanation{}, err
	}
	x.Decision = d.simulateSpend(max(req.MaxWait, 0))
	enforced := newAccounts(e.claims, d.Limits(), x.Decision.Limits())
	for i := range e.claims {
		if c := &e.claims[i]; c.own {
			x.Charges = append(x.Charges, enforced[c.status.Key])
		}
	}
	if e.policy != nil {
		x.explain(e, &req, enforced, newAccounts(e.shadow, d.Shadow, x.Decision.Shadow))
	}
	return x, nil
}

func (x *Explanation) explain(e *evaluation, req *Request, enforced, shadow map[string]Account) {
	attrs := req.Attributes
	if attrs == nil {
		attrs = Attrs(nil)
	}
	why := e.policy.Explain(attrs, e.cost, e.now)
	x.ShadowOverride = why.Shadow
	for _, c := range why.Rules {
		rule := RuleResult{Consideration: c}
		for _, match := range c.Matches {
			account := enforced[match.Key]
			if match.Shadow {
				account = shadow[match.Key]
			}
			rule.Accounts = append(rule.Accounts, account)
		}
		x.Rules = append(x.Rules, rule)
	}
}

func newAccounts(claims []claim, before, after []Status) map[string]Account {
	accounts := make(map[string]Account, len(claims))
	for i := range claims {
		c := &claims[i]
		s := &c.status
		accounts[s.Key] = Account{Status: Status{Rule: s.Rule, Limit: s.Limit, Key: s.Key, Snapshot: bucket.Snapshot{Limit: *c.limit, Cost: c.asked}}}
	}
	for i := range after {
		accounts[after[i].Key] = Account{Status: after[i], Before: before[i].Snapshot, Asked: true}
	}
	return accounts
}

// simulateSpend returns the dry-run decision d as it would look after the cost is spent.
func (d Decision) simulateSpend(maxWait time.Duration) Decision {
	d.setLimits(d.Limits())
	d.Shadow = slices.Clone(d.Shadow)
	if !d.Allowed {
		return d
	}
	if limits := d.Limits(); len(limits) > 0 {
		spendStatuses(limits)
		d.Wait = 0
		d.conclude(Mode{MaxWait: maxWait})
	}
	for rest := d.Shadow; len(rest) > 0; {
		n := 1
		for n < len(rest) && rest[n].Rule == rest[0].Rule {
			n++
		}
		if !slices.ContainsFunc(rest[:n], func(s Status) bool { return !s.Allowed }) {
			spendStatuses(rest[:n])
		}
		rest = rest[n:]
	}
	return d
}

func spendStatuses(statuses []Status) {
	for i := range statuses {
		statuses[i].Snapshot = statuses[i].WithCost()
	}
}
