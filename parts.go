// SPDX-License-Identifier: Apache-2.0

package mete

import (
	"fmt"
	"math/bits"
	"slices"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/shards"
	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/store"
)

// A partNumber is the index of a part plus 1, or 0 for none.
type partNumber uint8

// HasPart reports whether the limit applies to the i-th of [Request.Parts]. It is false for every i if the request
// has no parts, and for a limit of one of its Charges.
func (s *Status) HasPart(i int) bool { return i >= 0 && i < MaxParts && s.parts>>i&1 == 1 }

func (s *Status) firstPart() partNumber {
	if s.parts == 0 {
		return 0
	}
	return partNumber(bits.TrailingZeros64(s.parts) + 1)
}

// Part returns the index of the part that decided, in [Request.Parts]: the part of [Decision.Decider], or the part
// that the policy denied without a limit. If several parts share the limit, it is the first of them. It is -1 if the
// request has no parts, if no limit applied to them, or if one of the request's Charges decided.
func (d *Decision) Part() int {
	if s := d.Decider(); s != nil {
		return int(s.firstPart()) - 1
	}
	return int(d.denied) - 1
}

// denialPart returns the first part that was denied, or would be denied by a shadow rule, or -1.
func (d *Decision) denialPart() int {
	if s := d.shadowDenial(); d.Allowed && s != nil {
		return int(s.firstPart()) - 1
	}
	return d.Part()
}

// nearPart returns the first part that is near its limit, or -1.
func (d *Decision) nearPart() int {
	limits := d.Limits()
	for i := range limits {
		if limits[i].Near() {
			return int(limits[i].firstPart()) - 1
		}
	}
	return -1
}

// setPartAttributes sets the attributes of the denial to those of a part. It does nothing without parts.
func (e *evaluation) setPartAttributes(req *Request, number func() int) {
	if len(req.Parts) == 0 {
		return
	}
	e.denial.Attributes = Attrs(nil)
	if i := number(); i >= 0 && req.Parts[i].Attributes != nil {
		e.denial.Attributes = req.Parts[i].Attributes
	}
}

// checkParts validates the request's parts. Their costs are valid if it returns nil.
func (r *Request) checkParts() error {
	if len(r.Parts) > MaxParts {
		return fmt.Errorf("%w: %d parts: must be at most %d", ErrRequest, len(r.Parts), MaxParts)
	}
	if r.Attributes != nil || r.Cost != 0 {
		return fmt.Errorf("%w: a request with parts has no attributes and no cost of its own: set those of each part", ErrRequest)
	}
	for i := range r.Parts {
		p := &r.Parts[i]
		if _, ok := p.Cost.count(); !ok {
			return fmt.Errorf("%w: part %d: %v tokens: must be a multiple of 0.001 between 0 (the rule's own) and %v", ErrCost, i, p.Cost, bucket.MaxTokens)
		}
		if p.Look && p.Cost != 0 {
			return fmt.Errorf("%w: part %d: looks and has a cost: set only one of the two", ErrRequest, i)
		}
	}
	return nil
}

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
			return c, e.join(c, m, i)
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

// join adds the cost of a match to the claim for the same bucket.
func (e *evaluation) join(c *claim, m *policy.Match, i int) error {
	asked, parts, onStoreError := c.asked+m.Cost, c.status.parts, c.onStoreError
	if asked > bucket.MaxTokens {
		return fmt.Errorf("%w: part %d: the costs of its bucket add up to %v tokens: must be at most %v", ErrCost, i, asked, bucket.MaxTokens)
	}
	if m.Limit != c.status.Limit && m.Limit.Bucket.Capacity() < c.limit.Capacity() {
		e.setMatch(c, m)
	}
	c.asked, c.status.parts, c.onStoreError = asked, parts, onStoreError
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
