// SPDX-License-Identifier: Apache-2.0

package dropin

import (
	"fmt"
	"slices"

	commonv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
)

// A hit is the part of one descriptor in a request.
type hit struct {
	rule     *rule // nil if no limit applies
	counters *ruleCounters
	bucket   bucket.Limit // the counter or the token bucket
	key      string
	from, to int // of the key in call.text, until all keys are known

	hits     uint64
	negative bool
	chosen   bool // for the next request to the store

	// The result. Before and after are the counter's hits, as the reference server computes them. Limit is the number
	// of requests that this process admits: only local buckets have less than the rule's.
	before, after, limit uint64
	charged              uint64 // the part of hits that was counted
	over                 bool
	remaining            uint32
	reset                int64 // seconds
}

// A call is the memory of one request.
type call struct {
	finder   finder
	hits     []hit
	replaced []string // the names of limits that others of the request replace
	text     []byte   // all keys

	// The buckets of the hits that go to the store together. Hits with the same key share one.
	charges []mete.Charge
	places  []int // of hits in charges; -1 for none
	index   map[string]int
	states  []state // of the buckets, after the charges
}

func (c *call) release() {
	clear(c.hits)
	clear(c.charges)
	clear(c.index)
	clear(c.replaced)
	c.hits, c.charges, c.places, c.replaced = c.hits[:0], c.charges[:0], c.places[:0], c.replaced[:0]
	c.finder.shared = c.finder.shared[:0]
	if cap(c.text) > maxKeptBytes || cap(c.finder.metric) > maxKeptBytes {
		return // a client sent a huge value
	}
	calls.Put(c)
}

// maxKeptBytes bounds the memory that a call keeps for the next one.
const maxKeptBytes = 1 << 16

// read finds the limit and the counter of each descriptor.
func (c *call) read(s *Service, a *active, req *ratelimitv3.RateLimitRequest) error {
	domain := a.config.domains[req.GetDomain()]
	c.text = c.text[:0]
	for i, d := range req.GetDescriptors() {
		c.hits = append(c.hits, hit{})
		h := &c.hits[i]
		h.hits, h.negative = uint64(max(1, req.GetHitsAddend())), d.GetIsNegativeHits()
		if d.GetHitsAddend() != nil {
			h.hits = d.GetHitsAddend().GetValue()
		}
		if domain == nil {
			s.counters.countUnknown(req.GetDomain())
			continue
		}
		var shared []string
		if d.GetLimit() != nil {
			if err := c.readCaller(s, h, req.GetDomain(), d); err != nil {
				return fmt.Errorf("dropin: descriptor %d: limit: %w", i, err)
			}
		} else {
			m := c.finder.find(domain, req.GetDomain(), d.GetEntries())
			if m.rule == nil {
				continue
			}
			h.rule, shared = m.rule, m.shared
			state := a.rules[m.rule]
			h.counters, h.bucket = state.counters, state.bucket
			if string(c.finder.metric) != m.rule.name {
				if found := s.counters.find(c.finder.metric); found != nil {
					h.counters = found
				}
			}
			c.replaced = append(c.replaced, m.rule.replaces...)
		}
		if h.rule.unlimited {
			continue
		}
		suffix := h.rule.window.suffix
		if s.options.Algorithm == FixedWindow {
			h.bucket = h.rule.window.counter
		} else if h.rule.caller {
			suffix = fmt.Sprintf("%s,%d", suffix, h.rule.limit.RequestsPerUnit)
		}
		h.from = len(c.text)
		c.text = appendKey(c.text, s.options.KeyPrefix, req.GetDomain(), d.GetEntries(), shared, suffix)
		h.to = len(c.text)
	}
	if len(c.replaced) > 0 {
		c.replace()
	}
	keys := string(c.text)
	for i := range c.hits {
		h := &c.hits[i]
		h.key = keys[h.from:h.to]
	}
	return nil
}

// readCaller reads the limit of a descriptor in the request. It has neither a shadow mode nor a quota mode.
func (c *call) readCaller(s *Service, h *hit, domain string, d *commonv3.RateLimitDescriptor) error {
	l, units := d.GetLimit(), uint32(1)
	if l.GetUnitMultiplier() != nil {
		units = l.GetUnitMultiplier().GetValue()
	}
	unit := ratelimitv3.RateLimitResponse_RateLimit_Unit(l.GetUnit())
	w, err := newWindow(unit, units)
	if err != nil {
		return err
	}
	h.rule = &rule{caller: true, window: w, limit: &ratelimitv3.RateLimitResponse_RateLimit{
		RequestsPerUnit: l.GetRequestsPerUnit(), Unit: unit, UnitMultiplier: l.GetUnitMultiplier(),
	}}
	c.finder.nameCaller(domain, d.GetEntries())
	if h.counters = s.counters.find(c.finder.metric); h.counters == nil {
		h.counters = s.counters.register(domain + "." + otherName)
	}
	if s.options.Algorithm == TokenBucket {
		h.bucket, err = newBucket(l.GetRequestsPerUnit(), w)
	}
	return err
}

// replace removes the limits that another limit of the request replaces. A replaced limit still replaces others.
func (c *call) replace() {
	for i := range c.hits {
		if h := &c.hits[i]; h.rule != nil && !h.rule.unlimited && h.rule.limit.Name != "" && slices.Contains(c.replaced, h.rule.limit.Name) {
			h.rule, h.counters = nil, nil
		}
	}
}
