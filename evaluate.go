// SPDX-License-Identifier: Apache-2.0

package mete

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"
	"unsafe"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/outage"
	"github.com/metehq/mete/internal/shards"
	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/store"
)

// A claim is one bucket that a request is to be charged in.
type claim struct {
	status  Status        // its part in the decision: key, rule, limit, and what the store showed
	limit   *bucket.Limit // for the key
	asked   bucket.Tokens // the cost before Config.Scale
	cost    bucket.Tokens // and after it
	shards  int
	account *outage.Account // of the bucket of this process that decided it; nil where there are too many

	onStoreError policy.OnStoreError // Open in shadow: a shadow rule has no say
	leased       bool
	fixed        bool
	own          bool // the request brought it; no rule did
	local        bool // a bucket of this process decided it
}

// charge is what the store is asked for the claim.
func (c *claim) charge() (charge store.Charge) {
	c.write(&charge)
	return charge
}

// write writes the claim's charge.
func (c *claim) write(charge *store.Charge) {
	charge.Key, charge.Limit, charge.Cost = c.status.Key, *c.limit, c.cost
	charge.Shards, charge.Fixed, charge.Leased = c.shards, c.fixed, c.leased
}

// An evaluation is the claims that the policy makes on one request, and the memory to
// decide it.
type evaluation struct {
	found   policy.Found
	policy  *policy.Matcher
	now     bucket.Instant // where the policy depends on it
	cost    bucket.Tokens  // of the request; 0 for the costs of the rules
	claims  []claim        // in the order of the policy, and behind them the request's own
	shadow  []claim        // of shadow rules
	sharded bool           // some claim has shards
	within  time.Duration  // how long the store may take: the shortest deadline of any claim

	// The last question to the store, in the order of the keys.
	order   []*claim
	charges []store.Charge
	snaps   []bucket.Snapshot // for its answer, where it is about several

	slab   slab        // of the statuses that decisions keep
	trip   outage.Trip // of the charges, while they are decided
	seen   Decision    // while a hook has it
	denial Denial
}

var evaluations = sync.Pool{New: func() any { return new(evaluation) }}

// release keeps the memory for the next request. The pool keeps it, and all that it still
// points to, for two garbage collections at most.
func (e *evaluation) release() {
	e.claims, e.shadow, e.order, e.charges = e.claims[:0], e.shadow[:0], e.order[:0], e.charges[:0]
	e.sharded = false
	evaluations.Put(e)
}

// policyTold are attributes that are told which policy decides by them, and at what time.
type policyTold interface {
	Under(m *policy.Matcher, now bucket.Instant)
}

// evaluate finds the limits that the request falls under.
func (l *Limiter) evaluate(req *Request) (*evaluation, error) {
	cost, err := req.check()
	if err != nil {
		return nil, err
	}
	m := l.policy.Load()
	if m == nil && cost > 0 && len(req.Charges) > 0 {
		return nil, fmt.Errorf("%w: a cost of %v, and no policy whose rules it could be for: charges have costs of their own", ErrRequest, cost)
	}
	e := evaluations.Get().(*evaluation)
	e.cost = cost
	if e.policy = m; m == nil {
		e.found.Forget()
	} else {
		attrs := req.Attributes
		if attrs == nil {
			attrs = Attrs(nil)
		}
		e.now = 0
		if m.Timed() {
			e.now = l.now()
		}
		if told, ok := attrs.(policyTold); ok {
			told.Under(m, e.now)
		}
		m.Find(&e.found, attrs, cost, e.now)
	}
	if err := e.claim(req, &l.config); err != nil {
		e.release()
		return nil, err
	}
	return e, nil
}

// claim makes the claims of the limits that were found, and of the request's charges.
func (e *evaluation) claim(req *Request, config *Config) error {
	matches := e.found.Matches
	e.within = policy.MaxDeadline
	shadows := false
	for i := range matches {
		m := &matches[i]
		if m.Shadow {
			shadows = true
			continue
		}
		e.claims = next(e.claims)
		c := &e.claims[len(e.claims)-1]
		e.match(c, m)
		c.onStoreError = m.Rule.OnStoreError
		e.within = min(e.within, m.Rule.Deadline)
	}
	if len(req.Charges) > 0 {
		if err := e.bring(req, config); err != nil {
			return err
		}
	}
	for i := range matches {
		if shadows && matches[i].Shadow {
			e.shadow = next(e.shadow)
			e.match(&e.shadow[len(e.shadow)-1], &matches[i])
		}
	}
	return nil
}

// next appends a claim to claims. It need not be empty: a claim of an earlier request stays
// in the memory, and the caller writes over it.
func next(claims []claim) []claim {
	if n := len(claims); n < cap(claims) {
		return claims[:n+1]
	}
	return append(claims, claim{})
}

// match makes c the claim of a match.
func (e *evaluation) match(c *claim, m *policy.Match) {
	c.limit, c.asked, c.onStoreError = &m.Limit.Bucket, m.Cost, policy.StoreErrorOpen
	c.fixed, c.own = false, false
	c.status.Rule, c.status.Limit, c.status.Key = m.Rule, m.Limit, m.Key
	c.shards, c.leased = m.Limit.Shards, m.Limit.Leased
	if c.limit.Anchor() == bucket.AnchorKey {
		c.limit = new(c.limit.For(m.Key))
	}
	e.sharded = e.sharded || c.shards > 1
}

// bring adds the request's own charges to the claims. Charges with one key become one
// claim. A charge with the key of a rule becomes part of the rule's claim.
func (e *evaluation) bring(req *Request, config *Config) error {
	rules, sharded := len(e.claims), false
	for i := range req.Charges {
		own := &req.Charges[i]
		cost, err := own.check(i)
		if err != nil {
			return err
		}
		limit := &own.Limit
		if limit.Anchor() == bucket.AnchorKey {
			limit = new(limit.For(own.Key))
		}
		sharded = sharded || own.Shards > 1
		at := slices.IndexFunc(e.claims, func(c claim) bool { return c.status.Key == own.Key })
		if at < 0 {
			if len(e.claims) == store.MaxCharges {
				return fmt.Errorf("%w: more than %d charges", ErrRequest, store.MaxCharges)
			}
			e.claims = append(e.claims, claim{
				status: Status{Rule: noRule, Limit: noLimit(limit), Key: own.Key}, limit: limit, asked: cost,
				shards: own.Shards, leased: own.Leased, fixed: own.Fixed, onStoreError: config.OnStoreError, own: true,
			})
			e.within = min(e.within, config.Deadline)
			continue
		}
		c := &e.claims[at]
		if *c.limit != *limit || max(c.shards, 1) != max(own.Shards, 1) {
			return fmt.Errorf("%w: charge %d: its key has another limit already", ErrRequest, i)
		}
		if c.asked += cost; c.asked > bucket.MaxTokens {
			return fmt.Errorf("%w: charge %d: together with others of its key %v tokens: must be at most %v", ErrCost, i, c.asked, bucket.MaxTokens)
		}
	}
	if e.sharded = e.sharded || sharded; sharded {
		if err := shards.Check(e.charge(e.claims, nil)); err != nil {
			return fmt.Errorf("%w: %w", ErrRequest, err)
		}
	}
	if o := e.found.Verdict.Allow; o != nil && o.Action == policy.ActionBreakGlass {
		e.claims, e.within = e.claims[:rules], policy.MaxDeadline
	}
	return nil
}

// Decisions show these for a charge that the request brought: it has no rule, and no limit
// of a policy.
var (
	noRule   = &policy.Rule{}
	noLimits = func() (all []policy.Limit) {
		for _, reason := range bucket.Reasons() {
			all = append(all, policy.Limit{Reason: reason})
		}
		return all
	}()
)

func noLimit(l *bucket.Limit) *policy.Limit {
	reason := l.Reason()
	at := 0
	for noLimits[at].Reason != reason {
		at++
	}
	return &noLimits[at]
}

// sort puts claims in the order of their keys, which are distinct: rules never share a
// key, and bring has seen to the others.
func (e *evaluation) sort(claims []claim) []*claim {
	e.order = e.order[:0]
	for i := range claims {
		at := len(e.order) // insertion: there are rarely more than four
		e.order = append(e.order, nil)
		for ; at > 0 && claims[i].status.Key < e.order[at-1].status.Key; at-- {
			e.order[at] = e.order[at-1]
		}
		e.order[at] = &claims[i]
	}
	return e.order
}

// charge turns claims into charges as a [Store] wants them: in the order of their keys. A
// scale, unless nil, raises their costs.
func (e *evaluation) charge(claims []claim, scale func(bucket.Tokens) bucket.Tokens) []store.Charge {
	order := e.sort(claims)
	e.charges = slices.Grow(e.charges[:0], len(order))[:len(order)]
	for i, c := range order {
		if c.cost = c.asked; scale != nil && c.cost > 0 {
			c.cost = scaled(c.cost, c.limit, scale)
		}
		c.local, c.account = false, nil
		c.write(&e.charges[i])
	}
	return e.charges
}

// room is the memory for the store's answer: the status, if there is but one.
func (e *evaluation) room() []bucket.Snapshot {
	if len(e.order) == 1 {
		return unsafe.Slice(&e.order[0].status.Snapshot, 1)[:0]
	}
	return e.snaps[:0]
}

// answer puts the store's answer into the statuses.
func (e *evaluation) answer(snaps []bucket.Snapshot) {
	for i, c := range e.order {
		if s := &c.status.Snapshot; s != &snaps[i] {
			*s = snaps[i]
		}
	}
	if len(e.order) > 1 { // else it may be a status
		e.snaps = snaps
	}
}

// scaled is what cost becomes under limit l by a scale. It is no less than cost,
// and no more than l could admit at once where it could admit cost.
func scaled(cost bucket.Tokens, l *bucket.Limit, scale func(bucket.Tokens) bucket.Tokens) bucket.Tokens {
	most := l.Capacity()
	if l.Queued() {
		most += l.MaxReserved()
	}
	return max(min(scale(cost), most), cost)
}

// storeID returns the ID that the store is given: the caller's, and a hash of the
// question. The question is the keys in their order, each with its cost before scaling,
// and how the limiter takes. The order of rules and of [Request.Charges]
// makes no difference to it, and neither does the limit that a key has by now.
//
// A question with another key, another cost or another way to take gets no old answer.
// The length of MaxWait is no part of the question: a deadline that comes nearer makes
// it shorter with each retry.
func (e *evaluation) storeID(id string, mode Mode) string {
	way := byte('n') // what is there now
	switch {
	case mode.UpTo:
		way = 'u'
	case mode.MaxWait == bucket.Forced:
		way = 'f'
	case mode.MaxWait > 0:
		way = 'r' // also what will be there
	}
	text := append(make([]byte, 0, 128), way)
	for _, c := range e.sort(e.claims) {
		text = strconv.AppendInt(append(strconv.AppendQuote(text, c.status.Key), ' '), int64(c.asked), 10)
	}
	sum := sha256.Sum256(text)
	return id + " " + base64.RawURLEncoding.EncodeToString(sum[:12])
}

// show makes d show n limits: those of all claims, or else of those that buckets of this
// process decided. It copies them, because e is used again.
func (e *evaluation) show(d *Decision, n int) {
	if d.single = n == 1; !d.single {
		d.several = e.slab.statuses(n)
	}
	for i := range e.claims {
		switch c := &e.claims[i]; {
		case n < len(e.claims) && !c.local:
		case d.single:
			d.one[0] = c.status
		default:
			d.several = append(d.several, c.status)
		}
	}
}

// A slab is memory for the statuses of several decisions, because one allocation for each
// costs more. A program that keeps a decision keeps the memory of its neighbors.
type slab []Status

// slabStatuses is how many a slab holds, unless one decision needs more.
const slabStatuses = 24

// statuses returns memory for n statuses. No other decision gets it.
func (s *slab) statuses(n int) []Status {
	if cap(*s)-len(*s) < n {
		*s = make([]Status, 0, max(n, slabStatuses))
	}
	start := len(*s)
	*s = (*s)[:start+n]
	return (*s)[start : start : start+n]
}
