// SPDX-License-Identifier: Apache-2.0

package mete

import (
	"context"
	"slices"

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

	Key    string
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
	s, err := l.match(&req)
	if err != nil {
		return Explanation{}, err
	}
	defer s.release()
	e := Explanation{At: s.now, Policy: s.policy}
	if s.policy == nil || !s.policy.Timed() {
		e.At = l.now()
	}
	d, err := l.ask(ctx, s, &req, Mode{MaxWait: max(req.MaxWait, 0), DryRun: true}, nil)
	if err != nil {
		return Explanation{}, err
	}
	e.Decision = d.spent()
	accounts := l.accounts(s, &d, &e.Decision)
	e.Charges = accounts[len(s.matches):]
	if s.policy != nil {
		e.explain(s, &req, accounts)
	}
	return e, nil
}

// explain says what became of the rules.
func (e *Explanation) explain(s *scratch, req *Request, accounts []Account) {
	attrs := req.Attributes
	if attrs == nil {
		attrs = Attrs(nil)
	}
	why := s.policy.Explain(attrs, req.Cost, s.now)
	e.Calm = why.Shadow
	byKey := make(map[string]Account, len(s.matches))
	for i := range s.matches {
		byKey[accounts[i].Key] = accounts[i]
	}
	for _, c := range why.Rules {
		rule := Considered{Consideration: c}
		for _, match := range c.Matches {
			rule.Accounts = append(rule.Accounts, byKey[match.Key])
		}
		e.Rules = append(e.Rules, rule)
	}
}

// accounts are those of s's matches, and behind them of its own charges, as they
// stand before the request and after it.
func (l *Limiter) accounts(s *scratch, before, after *Decision) []Account {
	accounts := make([]Account, 0, len(s.matches)+len(s.own))
	for i := range s.matches {
		m := &s.matches[i]
		unseen := bucket.Snapshot{Limit: m.Limit.Bucket.For(m.Key), Cost: m.Cost}
		accounts = append(accounts, Account{Key: m.Key, Status: Status{m.Rule, m.Limit, unseen}})
	}
	for i := range s.own {
		c := &s.own[i]
		unseen := bucket.Snapshot{Limit: c.Limit, Cost: c.Cost}
		accounts = append(accounts, Account{Key: c.Key, Status: Status{noRule, noLimit(&c.Limit), unseen}})
	}
	shown := 0
	for i := range s.enforced + len(s.own) {
		if shown == len(after.Limits) || after.Degraded && l.onStoreError(s.matches[:s.enforced], i) != policy.Local {
			continue
		}
		at := i
		if i >= s.enforced {
			at += len(s.matches) - s.enforced
		}
		accounts[at].show(before.Limits[shown], after.Limits[shown])
		shown++
	}
	for i := range after.Shadow {
		accounts[s.enforced+i].show(before.Shadow[i], after.Shadow[i])
	}
	return accounts
}

func (a *Account) show(before, after Status) {
	a.Status, a.Before, a.Asked = after, before.Snapshot, true
}

// spent returns what d, which was decided without spending, is where that is
// spent.
func (d Decision) spent() Decision {
	d.Limits, d.Shadow = slices.Clone(d.Limits), slices.Clone(d.Shadow)
	if !d.Allowed {
		return d
	}
	if len(d.Limits) > 0 {
		spend(d.Limits)
		d.Wait = 0
		d.conclude(Mode{})
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
