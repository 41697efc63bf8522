// SPDX-License-Identifier: Apache-2.0

package mete

import (
	"context"
	"slices"
	"time"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/policy"
)

// An Explanation says what [Limiter.Take] would decide about a request now, and
// how it comes to that. It is a value; what it refers to must not be changed.
type Explanation struct {
	// Decision is what Take would return. Of limits with shards, and of leased ones,
	// it shows what they come to; the very bucket that pays is chosen when one does.
	Decision Decision

	// At is when, by the clock of [Config.Now]. Times in the explanation count from
	// it: a denied request passes RetryAfter later, if nobody else takes.
	At bucket.Instant

	// Policy is the policy that decided; nil where there is none.
	Policy *policy.Matcher

	// Calm is the override by which no rule denies anything; nil for none.
	Calm *policy.Override

	// Rules are all rules, in the order of the policy, and what became of each. There
	// are none behind a rule whose bucket is blocked, and none at all where an
	// override is about the whole request.
	Rules []Considered

	// Charges are the limits that the request brought with keys of their own.
	Charges []Account
}

// A Considered is what became of one rule, and of its buckets.
type Considered struct {
	policy.Consideration
	Accounts []Account // at the places of Matches
}

// An Account is one bucket's part in an explanation.
type Account struct {
	// Status is what the decision shows of it, in Limits or in Shadow: after the
	// request, where that is admitted. Where the bucket was not Asked, it has no more
	// than its limit and what the request would cost.
	Status

	Before bucket.Snapshot // as it is now: nothing is spent

	// Asked says whether the bucket had a say. It has none where the policy denies the
	// request by itself, and in shadow where other limits deny it; where the store
	// could not answer, only those have one that say local.
	Asked bool
}

// Explain says what Take would decide now, rule by rule. It spends nothing, writes
// no more than [Limiter.Peek] does, and calls no hook. [Request.ID] has no part in
// it: an attempt at what was admitted already is explained as if it were the
// first.
//
// It costs a look at the store for the limits that are enforced, and one for each
// rule in shadow. Errors are those of Take.
func (l *Limiter) Explain(ctx context.Context, req Request) (Explanation, error) {
	if ctx.Err() != nil {
		return Explanation{}, ended(ctx)
	}
	e, err := l.evaluate(&req)
	if err != nil {
		return Explanation{}, err
	}
	defer e.release()
	x := Explanation{At: e.now, Policy: e.policy}
	if e.policy == nil || !e.policy.Timed() {
		x.At = l.now()
	}
	var d Decision
	if err := l.charge(ctx, e, &req, Mode{MaxWait: max(req.MaxWait, 0), DryRun: true}, nil, &d); err != nil {
		return Explanation{}, err
	}
	x.Decision = d.spent(max(req.MaxWait, 0))
	enforced := accounts(e.claims, d.Limits(), x.Decision.Limits())
	for i := range e.claims {
		if c := &e.claims[i]; c.own {
			x.Charges = append(x.Charges, enforced[c.status.Key])
		}
	}
	if e.policy != nil {
		x.explain(e, &req, enforced, accounts(e.shadow, d.Shadow, x.Decision.Shadow))
	}
	return x, nil
}

// explain says what became of the rules.
func (x *Explanation) explain(e *evaluation, req *Request, enforced, shadow map[string]Account) {
	attrs := req.Attributes
	if attrs == nil {
		attrs = Attrs(nil)
	}
	why := e.policy.Explain(attrs, e.cost, e.now)
	x.Calm = why.Shadow
	for _, c := range why.Rules {
		rule := Considered{Consideration: c}
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

// accounts are those of claims by key, as the decision shows them before the request and
// after it.
func accounts(claims []claim, before, after []Status) map[string]Account {
	accounts := make(map[string]Account, len(claims))
	for i := range claims {
		c := &claims[i]
		s := &c.status
		accounts[s.Key] = Account{Status: Status{s.Rule, s.Limit, s.Key, bucket.Snapshot{Limit: *c.limit, Cost: c.asked}}}
	}
	for i := range after {
		accounts[after[i].Key] = Account{Status: after[i], Before: before[i].Snapshot, Asked: true}
	}
	return accounts
}

// spent returns what d, which was decided without spending, is where that is
// spent.
func (d Decision) spent(maxWait time.Duration) Decision {
	d.setLimits(d.Limits())
	d.Shadow = slices.Clone(d.Shadow)
	if !d.Allowed {
		return d
	}
	if limits := d.Limits(); len(limits) > 0 {
		spend(limits)
		d.Wait = 0
		d.conclude(Mode{MaxWait: maxWait})
	}
	for rest := d.Shadow; len(rest) > 0; {
		n := 1
		for n < len(rest) && rest[n].Rule == rest[0].Rule {
			n++
		}
		if !slices.ContainsFunc(rest[:n], func(s Status) bool { return !s.Allowed }) {
			spend(rest[:n])
		}
		rest = rest[n:]
	}
	return d
}

// spend shows buckets with the costs that they admit.
func spend(statuses []Status) {
	for i := range statuses {
		statuses[i].Snapshot = statuses[i].With()
	}
}
