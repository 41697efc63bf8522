// SPDX-License-Identifier: Apache-2.0

package mete

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"math/bits"
	"slices"
	"strconv"
	"sync"
	"unsafe"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/outage"
	"github.com/metehq/mete/internal/shards"
	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/store"
)

// A claim is one bucket that a request is to be charged in.
type claim struct {
	Charge // as the store is asked: with the limit for the key, and the scaled cost

	asked        bucket.Tokens // the cost before Config.Scale
	rule         *policy.Rule  // noRule where the request brought the charge
	limit        *policy.Limit
	onStoreError policy.OnStoreError // Open in shadow: a shadow rule has no say
	own          bool                // the request brought it; no rule did
	local        bool                // a bucket of this process decided it
	account      *outage.Account     // of that bucket; nil where there are too many
	status       *Status             // its part in the decision
}

// An evaluation is what the policy says of one request, and the memory to decide it.
type evaluation struct {
	found   policy.Found
	policy  *policy.Matcher
	now     bucket.Instant // where the policy depends on it
	claims  []claim        // in the order of the policy, and behind them the request's own
	shadow  []claim        // of shadow rules
	limits  []Status       // of the claims
	sharded bool           // some claim has shards

	// What the store was asked last. All three are in the order of the keys.
	order   []*claim
	charges []Charge
	snaps   []bucket.Snapshot

	trip   outage.Trip // of the charges, while they are decided
	seen   Decision    // while a hook has it
	denial Denial
}

var evaluations = sync.Pool{New: func() any { return new(evaluation) }}

// release lets go of the request, and keeps the memory.
func (e *evaluation) release() {
	e.found.Forget()
	clear(e.claims)
	clear(e.shadow)
	clear(e.order)
	clear(e.charges)
	e.claims, e.shadow, e.order, e.charges = e.claims[:0], e.shadow[:0], e.order[:0], e.charges[:0]
	e.policy, e.limits, e.sharded = nil, nil, false
	evaluations.Put(e)
}

// policyTold are attributes that are told which policy decides by them, and at what time.
type policyTold interface {
	Under(m *policy.Matcher, now bucket.Instant)
}

// evaluate finds the limits that the request falls under.
func (l *Limiter) evaluate(req *Request) (*evaluation, error) {
	if err := req.check(); err != nil {
		return nil, err
	}
	m := l.policy.Load()
	if m == nil && req.Cost > 0 && len(req.Charges) > 0 {
		return nil, fmt.Errorf("%w: a cost of %v, and no policy whose rules it could be for: charges have costs of their own", ErrRequest, req.Cost)
	}
	e := evaluations.Get().(*evaluation)
	if m != nil {
		attrs := req.Attributes
		if attrs == nil {
			attrs = Attrs(nil)
		}
		e.policy, e.now = m, 0
		if m.Timed() {
			e.now = l.now()
		}
		if told, ok := attrs.(policyTold); ok {
			told.Under(m, e.now)
		}
		m.Find(&e.found, attrs, req.Cost, e.now)
	}
	if err := e.claim(req, l.config.OnStoreError); err != nil {
		e.release()
		return nil, err
	}
	return e, nil
}

// shortKey is how long a key can be that lies beside the status of its bucket.
const shortKey = 64

// An only is the status of a request that falls under one limit, and the key of its
// bucket: both in one allocation.
type only struct {
	status [1]Status
	key    [shortKey]byte
}

// claim makes the claims of the limits that were found, and of the request's charges,
// which do what own says when the store does not answer.
func (e *evaluation) claim(req *Request, own policy.OnStoreError) error {
	if text := e.found.Keys(); len(e.found.Matches) == 1 && len(req.Charges) == 0 && len(text) <= shortKey {
		o := new(only)
		e.limits = o.status[:]
		// Nothing writes to the key after this.
		e.found.SetKeys(unsafe.String(&o.key[0], copy(o.key[:], text)))
	} else {
		e.found.SetKeys(string(text))
	}
	for i := range e.found.Matches {
		m := &e.found.Matches[i]
		list := &e.claims
		if m.Shadow {
			list = &e.shadow
		}
		*list = append(*list, claim{})
		c := &(*list)[len(*list)-1]
		c.Key, c.Limit, c.asked, c.rule, c.limit = m.Key, m.Limit.Bucket, m.Cost, m.Rule, m.Limit
		c.Shards, c.Leased = m.Limit.Shards, m.Limit.Leased
		if c.Limit.Anchor() == bucket.AnchorKey {
			c.Limit = c.Limit.For(c.Key)
		}
		if !m.Shadow {
			c.onStoreError = m.Rule.OnStoreError
		}
		e.sharded = e.sharded || c.Shards > 1
	}
	if len(req.Charges) > 0 {
		if err := e.bring(req, own); err != nil {
			return err
		}
	}
	if len(e.limits) < len(e.claims) {
		e.limits = make([]Status, len(e.claims))
	}
	e.limits = e.limits[:len(e.claims)]
	place(e.claims, e.limits)
	return nil
}

// place gives each claim its status.
func place(claims []claim, statuses []Status) {
	for i := range claims {
		c, s := &claims[i], &statuses[i]
		c.status, s.Rule, s.Limit, s.Key = s, c.rule, c.limit, c.Key
	}
}

// bring adds the charges that the request brings to those of the policy. Those
// with one key become one; where it is a key of the policy's, they become part of
// the rule's.
func (e *evaluation) bring(req *Request, onStoreError policy.OnStoreError) error {
	rules, sharded := len(e.claims), false
	for i := range req.Charges {
		own := req.Charges[i]
		if err := checkCharge(&own, i); err != nil {
			return err
		}
		if own.Limit.Anchor() == bucket.AnchorKey {
			own.Limit = own.Limit.For(own.Key)
		}
		sharded = sharded || own.Shards > 1
		at := slices.IndexFunc(e.claims, func(c claim) bool { return c.Key == own.Key })
		if at < 0 {
			e.claims = append(e.claims, claim{Charge: own, asked: own.Cost, rule: noRule, limit: noLimit(&own.Limit), onStoreError: onStoreError, own: true})
			if len(e.claims) > store.MaxCharges {
				return fmt.Errorf("%w: more than %d charges", ErrRequest, store.MaxCharges)
			}
			continue
		}
		c := &e.claims[at]
		if c.Limit != own.Limit || max(c.Shards, 1) != max(own.Shards, 1) {
			return fmt.Errorf("%w: charge %d: its key has another limit already", ErrRequest, i)
		}
		if c.asked += own.Cost; c.asked > bucket.MaxTokens {
			return fmt.Errorf("%w: charge %d: together with others of its key %v tokens: must be at most %v", ErrCost, i, c.asked, bucket.MaxTokens)
		}
	}
	if e.sharded = e.sharded || sharded; sharded {
		if err := shards.Check(e.charge(e.claims, nil)); err != nil {
			return fmt.Errorf("%w: %w", ErrRequest, err)
		}
	}
	if o := e.found.Verdict.Allow; o != nil && o.Action == policy.BreakGlass {
		clear(e.claims[rules:])
		e.claims = e.claims[:rules]
	}
	return nil
}

// checkCharge returns what is wrong with c, which is the i'th of a request. It says
// nothing about the key but its length, because a key may name a client.
func checkCharge(c *Charge, i int) error {
	switch {
	case c.Key == "" || len(c.Key) > store.MaxKeyBytes:
		return fmt.Errorf("%w: charge %d: a key of %d bytes: must have between 1 and %d", ErrRequest, i, len(c.Key), store.MaxKeyBytes)
	case c.Limit == bucket.Limit{}:
		return fmt.Errorf("%w: charge %d: no limit: make one with bucket.NewLimit or bucket.Spec", ErrRequest, i)
	case c.Cost < 0 || c.Cost > bucket.MaxTokens:
		return fmt.Errorf("%w: charge %d: %v tokens: must be between 0 and %v", ErrCost, i, c.Cost, bucket.MaxTokens)
	case c.Shards < 0:
		return fmt.Errorf("%w: charge %d: %d shards: must not be below 0", ErrRequest, i, c.Shards)
	case shards.IsKey(c.Key):
		return fmt.Errorf("%w: charge %d: its key begins with %q or ends with it and a number, as those of shards do", ErrRequest, i, shards.Mark)
	}
	return nil
}

// What decisions show in the place of a rule, and of its limit, where the request
// brought the charge.
var (
	noRule   = &policy.Rule{}
	noLimits = [...]policy.Limit{
		{Reason: "token_bucket_exceeded"},
		{Reason: "fixed_window_exceeded"},
		{Reason: "sliding_window_exceeded"},
		{Reason: "sliding_log_exceeded"},
		{Reason: "leaky_bucket_exceeded"},
	}
)

func noLimit(l *bucket.Limit) *policy.Limit {
	switch n, _ := l.Refill(); {
	case l.Queued():
		return &noLimits[4]
	case l.Algorithm() == bucket.SlidingLog:
		return &noLimits[3]
	case l.Algorithm() == bucket.SlidingWindow:
		return &noLimits[2]
	case l.Algorithm() == bucket.Stepped && n == l.Capacity():
		return &noLimits[1]
	}
	return &noLimits[0]
}

// sort puts claims in the order of their keys, which are distinct: rules never share a
// key, and bring has seen to the others.
func (e *evaluation) sort(claims []claim) []*claim {
	e.order = e.order[:0]
	for i := range claims {
		c := &claims[i]
		at := len(e.order) // insertion: there are rarely more than four
		for at > 0 && c.Key < e.order[at-1].Key {
			at--
		}
		e.order = slices.Insert(e.order, at, c)
	}
	return e.order
}

// charge turns claims into charges as a [Store] wants them: in the order of their keys. A
// scale, unless nil, raises their costs.
func (e *evaluation) charge(claims []claim, scale func(bucket.Tokens) bucket.Tokens) []Charge {
	e.charges = e.charges[:0]
	for _, c := range e.sort(claims) {
		if c.Cost = c.asked; scale != nil && c.Cost > 0 {
			c.Cost = scaled(c.Cost, &c.Limit, scale)
		}
		c.local, c.account = false, nil
		e.charges = append(e.charges, c.Charge)
	}
	return e.charges
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

// proportion returns x·num/den, rounded down or up, at most [bucket.MaxTokens],
// for amounts of which none is negative and den is above 0.
func proportion(x, num, den bucket.Tokens, up bool) bucket.Tokens {
	hi, lo := bits.Mul64(uint64(x), uint64(num))
	if hi >= uint64(den) {
		return bucket.MaxTokens
	}
	quotient, rest := bits.Div64(hi, lo, uint64(den))
	if up && rest > 0 {
		quotient++
	}
	return bucket.Tokens(min(quotient, uint64(bucket.MaxTokens)))
}

// storeID returns the ID that the store is given: the caller's, and a hash of the
// question. The question is the keys, each with its cost before scaling, in the order
// of the keys, and how the limiter takes. The order of rules and of [Request.Charges]
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
		text = strconv.AppendInt(append(strconv.AppendQuote(text, c.Key), ' '), int64(c.asked), 10)
	}
	sum := sha256.Sum256(text)
	return id + " " + base64.RawURLEncoding.EncodeToString(sum[:12])
}
