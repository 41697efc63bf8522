// SPDX-License-Identifier: Apache-2.0

package mete

import (
	"fmt"
	"slices"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/shards"
	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/store"
)

// evaluateParts does the work of evaluate for a request with parts.
func (l *Limiter) evaluateParts(req *Request) (*evaluation, error) {
	if err := req.checkParts(); err != nil {
		return nil, err
	}
	e := evaluations.Get().(*evaluation)
	e.policy, e.now, e.cost = l.policy.Load(), 0, 0
	e.within, e.skipped = policy.MaxDeadline, e.skipped[:0]
	if e.policy != nil && e.policy.DependsOnTime() {
		e.now = l.now()
	}
	var verdict policy.Verdict
	suspended := true // by a break glass, for every part
	for i := range req.Parts {
		v, err := e.addPart(i, &req.Parts[i])
		if err != nil {
			e.release()
			return nil, err
		}
		suspended = suspended && v.Allow != nil && v.Allow.Action == policy.ActionBreakGlass
		switch {
		case verdict.Denies():
		case v.Denies():
			verdict, e.denied = v, partNumber(i+1)
		case verdict.Allow == nil:
			verdict.Allow = v.Allow
		}
	}
	if err := e.finishParts(req, &l.config, &verdict, suspended); err != nil {
		e.release()
		return nil, err
	}
	return e, nil
}

// addPart adds claims for the limits of the i-th part, and returns the policy's verdict about it.
func (e *evaluation) addPart(i int, part *Part) (policy.Verdict, error) {
	cost, _ := part.Cost.count() // valid: see checkParts
	e.cost = max(e.cost, cost)
	if e.policy == nil {
		return policy.Verdict{}, nil
	}
	attrs := part.Attributes
	if attrs == nil {
		attrs = Attrs(nil)
	}
	if told, ok := attrs.(policyAware); ok {
		told.SetPolicy(e.policy, e.now)
	}
	e.policy.Find(&e.found, attrs, cost, e.now)
	for _, rule := range e.found.Skipped {
		if !slices.Contains(e.skipped, rule) {
			e.skipped = append(e.skipped, rule)
		}
	}
	for at := range e.found.Matches {
		m := &e.found.Matches[at]
		if part.Look {
			m.Cost = 0
		}
		c, err := e.claimOf(m, i)
		if err != nil {
			return policy.Verdict{}, err
		}
		c.status.parts |= 1 << i
		switch {
		case part.Look:
		case cost > 0 || !m.Limit.FixedCost():
			c.settled = true
		default:
			c.kept += m.Cost
		}
	}
	return e.found.Verdict, nil
}

// claimOf returns the claim for a match of the i-th part. A match for the bucket of an earlier part raises the cost
// of the earlier claim.
func (e *evaluation) claimOf(m *policy.Match, i int) (*claim, error) {
	list := &e.claims
	if m.Shadow {
		list = &e.shadow
	} else {
		e.within = min(e.within, m.Rule.Deadline)
	}
	place := len(*list)
	for at := range *list {
		c := &(*list)[at]
		if c.status.Key == m.Key {
			return c, c.join(m, i)
		}
		if m.Shadow && c.status.Rule == m.Rule {
			place = at + 1 // the claims of a shadow rule are one take
		}
	}
	if !m.Shadow && place == store.MaxCharges {
		return nil, fmt.Errorf("%w: part %d: more than %d buckets: send fewer parts in one request", ErrRequest, i, store.MaxCharges)
	}
	*list = slices.Insert(*list, place, claim{})
	c := &(*list)[place]
	e.setMatch(c, m)
	if !m.Shadow {
		c.onStoreError = m.Rule.OnStoreError
	}
	return c, nil
}

// join adds the cost of a match to the claim for the same bucket. The limits are equal, because a policy rejects
// overrides that give a bucket two limits.
func (c *claim) join(m *policy.Match, i int) error {
	if holdsSlot(c.limit) { // all parts together hold one slot
		c.asked = max(c.asked, m.Cost)
		return nil
	}
	if c.asked += m.Cost; c.asked > bucket.MaxTokens {
		return fmt.Errorf("%w: part %d: the costs of its bucket add up to %v tokens: must be at most %v", ErrCost, i, c.asked, bucket.MaxTokens)
	}
	return nil
}

// finishParts adds the request's own charges and the verdict about all parts. A break glass suspends the charges
// only if it applies to every part.
func (e *evaluation) finishParts(req *Request, config *Config, verdict *policy.Verdict, suspended bool) error {
	e.found.Verdict = policy.Verdict{}
	if e.policy == nil {
		e.found.Reset()
	}
	if len(req.Charges) > 0 && !suspended {
		if err := e.addOwnCharges(req, config); err != nil {
			return err
		}
	}
	if slices.ContainsFunc(e.claims, func(c claim) bool { return c.shards > 1 }) {
		if err := shards.Check(e.charge(e.claims, nil)); err != nil {
			return fmt.Errorf("%w: %w", ErrRequest, err)
		}
	}
	e.found.Verdict = *verdict
	e.found.Skipped, e.skipped = e.skipped, e.found.Skipped
	return nil
}

// firstTake returns the first claims, as many as one take may have, counting their shards. Only shadow rules of
// several parts can have more.
func firstTake(claims []claim) []claim {
	keys, bound := 0, store.MaxCharges
	for i := range claims {
		n := max(claims[i].shards, 1)
		if n > 1 {
			bound = store.MaxCharges - 1 // for the marker of the take: see package shards
		}
		if keys += n; keys > bound {
			return claims[:i]
		}
	}
	return claims
}

// setPartAttributes sets the attributes of the denial to the attributes of a part. It does nothing without parts.
func (e *evaluation) setPartAttributes(req *Request, number func() int) {
	if len(req.Parts) == 0 {
		return
	}
	e.denial.Attributes = Attrs(nil)
	if i := number(); i >= 0 && req.Parts[i].Attributes != nil {
		e.denial.Attributes = req.Parts[i].Attributes
	}
}
