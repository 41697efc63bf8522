// SPDX-License-Identifier: Apache-2.0

package mete

import (
	"context"
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

// A claim is the charge of one request to one bucket.
type claim struct {
	status  Status        // key, rule, limit, and the store's snapshot
	limit   *bucket.Limit // for the key
	asked   bucket.Tokens // the cost before Config.Scale
	cost    bucket.Tokens // the cost after Config.Scale
	shards  int
	penalty *bucket.Penalty
	onFull  store.OnFull
	account *outage.Account // of the local bucket that decided; nil above the bound of accounts
	await   time.Duration   // until the settlement that the response determines, or 0

	onStoreError policy.OnStoreError // always Open for shadow rules
	leased       bool
	fixed        bool
	own          bool // from the request instead of a rule
	local        bool // decided by a local bucket

	// Only for requests with parts: see receipt.
	settled bool          // Settle replaces a part of the cost
	kept    bucket.Tokens // the rest of the cost
}

func (c *claim) charge() (charge store.Charge) {
	c.write(&charge)
	return charge
}

// write writes the claim's charge for the store. Writing in place avoids a copy per claim.
func (c *claim) write(charge *store.Charge) {
	charge.Key, charge.Limit, charge.Cost = c.status.Key, *c.limit, c.cost
	charge.Shards, charge.Penalty, charge.OnFull, charge.Fixed, charge.Leased = c.shards, c.penalty, c.onFull, c.fixed, c.leased
	charge.Await, charge.Slot = c.await, bucket.SlotID{} // the caller sets the ID of a slot
}

// An evaluation holds the claims of one request and the memory to decide it.
type evaluation struct {
	found   policy.MatchResult
	policy  *policy.Matcher
	now     bucket.Instant // 0 unless the policy depends on the time.
	cost    bucket.Tokens  // of the request; 0 means each rule's own cost.
	claims  []claim        // in the order of the policy, followed by the request's own.
	shadow  []claim        // of shadow rules.
	sharded bool           // at least one claim has shards
	slots   bool           // at least one claim is for a slot
	slot    bucket.SlotID  // of the request; zero until needed
	within  time.Duration  // the shortest deadline of the claims
	denied  partNumber     // the part that the policy denied without limits
	skipped []*policy.Rule // of all parts, in place of found.Skipped

	// The last call to the store, in the order of the keys.
	order   []*claim
	charges []store.Charge
	snaps   []bucket.Snapshot // the answer for more than one charge

	slab   slab        // for the statuses that decisions retain
	trip   outage.Trip // of the charges in flight
	hold   holdFunc    // in place of the store's Take; nil for a take
	seen   Decision    // passed to hooks
	denial Denial
}

// A holdFunc makes a hold of the charges of an evaluation.
type holdFunc func(ctx context.Context, e *evaluation, charges []store.Charge, mode Mode) ([]bucket.Snapshot, bool, error)

var evaluations = sync.Pool{New: func() any { return new(evaluation) }}

// release returns e to the pool. The pool keeps e, and everything e still points to, for at most two garbage
// collections.
func (e *evaluation) release() {
	e.claims, e.shadow, e.order, e.charges = e.claims[:0], e.shadow[:0], e.order[:0], e.charges[:0]
	e.sharded, e.slots, e.slot, e.denied, e.hold = false, false, bucket.SlotID{}, 0, nil
	evaluations.Put(e)
}

// policyAware is implemented by attributes that depend on the deciding policy and the time.
type policyAware interface {
	SetPolicy(m *policy.Matcher, now bucket.Instant)
}

func (l *Limiter) evaluate(req *Request) (*evaluation, error) {
	cost, err := req.check()
	if err != nil {
		return nil, err
	}
	if len(req.Parts) > 0 {
		return l.evaluateParts(req)
	}
	m := l.policy.Load()
	if m == nil && cost > 0 && len(req.Charges) > 0 {
		return nil, fmt.Errorf("%w: cost %v without a policy: set the cost of each charge instead", ErrRequest, cost)
	}
	e := evaluations.Get().(*evaluation)
	e.cost = cost
	if e.policy = m; m == nil {
		e.found.Reset()
	} else {
		attrs := req.Attributes
		if attrs == nil {
			attrs = Attrs(nil)
		}
		e.now = 0
		if m.DependsOnTime() {
			e.now = l.now()
		}
		if told, ok := attrs.(policyAware); ok {
			told.SetPolicy(m, e.now)
		}
		m.Find(&e.found, attrs, cost, e.now)
	}
	if err := e.addClaims(req, &l.config); err != nil {
		e.release()
		return nil, err
	}
	return e, nil
}

func (e *evaluation) addClaims(req *Request, config *Config) error {
	matches := e.found.Matches
	e.within = policy.MaxDeadline
	shadows := false
	for i := range matches {
		m := &matches[i]
		if m.Shadow {
			shadows = true
			continue
		}
		e.claims = appendClaim(e.claims)
		c := &e.claims[len(e.claims)-1]
		e.setMatch(c, m)
		c.onStoreError = m.Rule.OnStoreError
		e.within = min(e.within, m.Rule.Deadline)
	}
	if len(req.Charges) > 0 {
		if err := e.addOwnCharges(req, config); err != nil {
			return err
		}
	}
	for i := range matches {
		if shadows && matches[i].Shadow {
			e.shadow = appendClaim(e.shadow)
			e.setMatch(&e.shadow[len(e.shadow)-1], &matches[i])
		}
	}
	return nil
}

// appendClaim extends claims by one element. The element may hold a claim of an earlier request: the caller
// overwrites it.
func appendClaim(claims []claim) []claim {
	if n := len(claims); n < cap(claims) {
		return claims[:n+1]
	}
	return append(claims, claim{})
}

func (e *evaluation) setMatch(c *claim, m *policy.Match) {
	c.limit, c.asked, c.onStoreError = &m.Limit.Bucket, m.Cost, policy.OnStoreErrorOpen
	c.fixed, c.own, c.status.parts, c.await = false, false, 0, 0
	c.status.Rule, c.status.Limit, c.status.Key = m.Rule, m.Limit, m.Key
	c.shards, c.penalty, c.onFull, c.leased = m.Limit.Shards, m.Limit.Penalty, m.Rule.OnFull, m.Limit.Leased
	if c.limit.Anchor() == bucket.AnchorKey {
		c.limit = new(c.limit.ForKey(m.Key))
	}
	e.sharded = e.sharded || c.shards > 1
	e.slots = e.slots || holdsSlot(c.limit)
}

// addOwnCharges adds claims for the request's own charges. Charges with the same key become one claim, and a
// charge with the key of a rule joins the rule's claim.
func (e *evaluation) addOwnCharges(req *Request, config *Config) error {
	rules, sharded := len(e.claims), false
	for i := range req.Charges {
		own := &req.Charges[i]
		cost, err := own.check(i)
		if err != nil {
			return err
		}
		limit := &own.Limit
		if holdsSlot(limit) {
			if own.Shards > 1 || own.Penalty != nil || own.Leased {
				return fmt.Errorf("%w: charge %d: a concurrency limit has no shards, penalty or leases: remove them", ErrRequest, i)
			}
			e.slots, cost = true, min(cost, 1)*bucket.Token
		}
		if limit.Anchor() == bucket.AnchorKey {
			limit = new(limit.ForKey(own.Key))
		}
		sharded = sharded || own.Shards > 1
		at := slices.IndexFunc(e.claims, func(c claim) bool { return c.status.Key == own.Key })
		if at < 0 {
			if len(e.claims) == store.MaxCharges {
				return fmt.Errorf("%w: more than %d charges", ErrRequest, store.MaxCharges)
			}
			e.claims = append(e.claims, claim{
				status: Status{Rule: placeholderRule, Limit: placeholderLimit(limit), Key: own.Key}, limit: limit, asked: cost,
				shards: own.Shards, penalty: own.Penalty, leased: own.Leased, fixed: own.Fixed, onStoreError: config.OnStoreError, own: true,
			})
			e.within = min(e.within, config.Deadline)
			continue
		}
		c := &e.claims[at]
		if *c.limit != *limit || max(c.shards, 1) != max(own.Shards, 1) || !c.penalty.Equal(own.Penalty) {
			return fmt.Errorf("%w: charge %d: its key already has a different limit or penalty", ErrRequest, i)
		}
		if c.asked += cost; holdsSlot(limit) {
			c.asked = min(c.asked, bucket.Token) // a request holds one slot
		}
		if c.asked > bucket.MaxTokens {
			return fmt.Errorf("%w: charge %d: the charges of its key add up to %v tokens: must be at most %v", ErrCost, i, c.asked, bucket.MaxTokens)
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

// A claim of a request's own charge has no rule and no limit of a policy. Decisions show these placeholders.
var (
	placeholderRule   = &policy.Rule{}
	placeholderLimits = func() (all []policy.Limit) {
		for _, reason := range bucket.Reasons() {
			all = append(all, policy.Limit{Reason: reason})
		}
		return all
	}()
)

func placeholderLimit(l *bucket.Limit) *policy.Limit {
	reason := l.Reason()
	at := 0
	for placeholderLimits[at].Reason != reason {
		at++
	}
	return &placeholderLimits[at]
}

// sort returns the claims in the order of their keys. Keys are distinct: rules never share a key, and
// addOwnCharges merges equal ones.
func (e *evaluation) sort(claims []claim) []*claim {
	e.order = e.order[:0]
	for i := range claims {
		at := len(e.order) // insertion sort: there are rarely more than four
		e.order = append(e.order, nil)
		for ; at > 0 && claims[i].status.Key < e.order[at-1].status.Key; at-- {
			e.order[at] = e.order[at-1]
		}
		e.order[at] = &claims[i]
	}
	return e.order
}

// charge returns the claims' charges in the order of their keys, as a [Store] requires. A scale, unless nil,
// raises the costs.
func (e *evaluation) charge(claims []claim, scale func(bucket.Tokens) bucket.Tokens) []store.Charge {
	order := e.sort(claims)
	e.charges = slices.Grow(e.charges[:0], len(order))[:len(order)]
	for i, c := range order {
		if c.cost = c.asked; scale != nil && c.cost > 0 && !holdsSlot(c.limit) {
			c.cost = scaleCost(c.cost, c.limit, scale)
		}
		c.local, c.account = false, nil
		c.write(&e.charges[i])
	}
	return e.charges
}

// snapshotBuffer returns the memory for the store's answer. A single claim needs no extra memory: the answer
// goes into its status.
func (e *evaluation) snapshotBuffer() []bucket.Snapshot {
	if len(e.order) == 1 {
		return unsafe.Slice(&e.order[0].status.Snapshot, 1)[:0]
	}
	return e.snaps[:0]
}

func (e *evaluation) setSnapshots(snaps []bucket.Snapshot) {
	for i, c := range e.order {
		if s := &c.status.Snapshot; s != &snaps[i] {
			*s = snaps[i]
		}
	}
	if len(e.order) > 1 { // the snapshot of a single claim may be in its status
		e.snaps = snaps
	}
}

// scaleCost returns the scaled cost under l. It is never below cost, and never above the largest cost that l
// can admit in one request, unless cost itself is above it.
func scaleCost(cost bucket.Tokens, l *bucket.Limit, scale func(bucket.Tokens) bucket.Tokens) bucket.Tokens {
	most := l.Capacity()
	if l.Queued() {
		most += l.MaxReserved()
	}
	return max(min(scale(cost), most), cost)
}

// storeID returns the ID for the store: the caller's ID plus a hash of the keys, their unscaled costs, and the
// mode of the take. Reusing an ID for a different request therefore never replays the old answer.
//
// The order of rules and of [Request.Charges] does not change the hash, and neither does a new limit for a key.
// The value of MaxWait is left out because an approaching deadline shortens it on each retry.
func (e *evaluation) storeID(id string, mode Mode) string {
	way := byte('n') // only available tokens
	switch {
	case mode.UpTo:
		way = 'u'
	case mode.MaxWait == bucket.Forced:
		way = 'f'
	case mode.MaxWait > 0:
		way = 'r' // also future tokens
	}
	sum := sha256.Sum256(e.appendCharges(append(make([]byte, 0, 128), way)))
	return id + " " + base64.RawURLEncoding.EncodeToString(sum[:12])
}

// appendCharges appends the keys of the claims and their unscaled costs to text.
func (e *evaluation) appendCharges(text []byte) []byte {
	for _, c := range e.sort(e.claims) {
		text = strconv.AppendInt(append(strconv.AppendQuote(text, c.status.Key), ' '), int64(c.asked), 10)
	}
	return text
}

// copyStatuses copies n statuses into d: the statuses of all claims, or of the claims that local buckets decided. It
// copies them because e is reused.
func (e *evaluation) copyStatuses(d *Decision, n int) {
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

// A slab holds the statuses of several decisions, because one allocation per decision is slower. A program that
// retains a decision also retains its neighbors in the slab.
type slab []Status

const slabStatuses = 24

// statuses returns memory for n statuses that no other decision uses.
func (s *slab) statuses(n int) []Status {
	if cap(*s)-len(*s) < n {
		*s = make([]Status, 0, max(n, slabStatuses))
	}
	start := len(*s)
	*s = (*s)[:start+n]
	return (*s)[start : start : start+n]
}
