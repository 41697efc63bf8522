// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"net/netip"
	"slices"
	"sync"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/clientaddr"
	"github.com/metehq/mete/policy/internal/inspect"
	"github.com/metehq/mete/store"
)

// MaxMatches bounds the limits that apply to one request. A policy that could exceed it is rejected.
const MaxMatches = store.MaxCharges

// A Match is one limit that applies to a request.
type Match struct {
	Rule   *Rule
	Limit  *Limit
	Key    string        // of the bucket; unique, and prefixed by rule and limit
	Cost   bucket.Tokens // > 0
	Shadow bool          // the limit must not deny: by the rule's mode, for this key, or by an override
}

// A Verdict is the decision of a policy regardless of limits. The zero Verdict leaves the decision to the limits.
type Verdict struct {
	Missing *Rule     // denies the request because it lacks an attribute (on_missing: deny)
	Block   *Override // denies the request
	Allow   *Override // admits the request; no limit applies

	// TooLarge denies the request because it has more tokens than the rule admits for one request. Why is the reason, such
	// as [ReasonPromptTokens].
	TooLarge *Rule
	Why      string
}

// Denies reports whether the request is denied regardless of its limits. The caller should then charge nothing.
func (v *Verdict) Denies() bool { return v.Block != nil || v.Missing != nil || v.TooLarge != nil }

type fact struct {
	looked  bool
	present bool // false for invalid addresses
	value   string
	addr    netip.Addr // for [SourceIP]
}

// A tier records whether earlier rules of a group apply.
type tier uint8

const (
	untaken tier = iota
	takenShadow
	taken
)

// A scratch is the memory of one decision. Any [Matcher] can use it: see [Matcher.begin].
type scratch struct {
	facts    []fact // by slot
	lookedUp []int  // slots of the facts that were looked up
	tiers    []tier // by group
	scopes   []tier // by policy of the bundle
	key      []byte
	captured []int // slots of the facts that the current rule captured
	rule     *Rule // the current rule; nil before the first

	alternative int     // the alternative of the rule that holds, or is being tried
	found       []int32 // numbers of rules that may apply, or of overrides
	also        []int32 // numbers of overrides of one rule
	keys        keys

	attrs  Attributes
	cost   bucket.Tokens
	now    bucket.Instant
	shadow bool // everything is in shadow
}

func (m *Matcher) begin(s *scratch, attrs Attributes, cost bucket.Tokens, now bucket.Instant) {
	if n := len(m.attributes); len(s.facts) < n {
		s.facts = make([]fact, n)
	}
	if len(s.tiers) < m.groups {
		s.tiers = make([]tier, m.groups)
	}
	if len(s.scopes) < m.scopes {
		s.scopes = make([]tier, m.scopes)
	}
	s.attrs, s.cost, s.now = attrs, cost, now
}

// end releases the values of the request and prepares s for the next one. The keys stay.
func (s *scratch) end() {
	for _, slot := range s.lookedUp {
		s.facts[slot] = fact{}
	}
	s.forgetCaptures()
	s.lookedUp, s.found, s.attrs, s.rule, s.shadow = s.lookedUp[:0], s.found[:0], nil, nil, false
}

// A MatchResult holds the result of [Matcher.Find]. It is reusable, but not safe for concurrent use. The zero
// MatchResult is ready for use.
type MatchResult struct {
	// Matches are the limits that apply to the request, in the order of the rules. Their keys stay valid when the
	// MatchResult is reused.
	Matches []Match

	// Skipped are the rules that do not apply because the request lacks an attribute of their key (on_missing:
	// skip).
	Skipped []*Rule

	// Verdict can deny the request, even if Matches is not empty.
	Verdict Verdict

	scratch scratch
}

// Reset releases the request and keeps the memory.
func (f *MatchResult) Reset() {
	clear(f.Matches)
	clear(f.Skipped)
	f.Matches, f.Skipped, f.Verdict = f.Matches[:0], f.Skipped[:0], Verdict{}
}

var founds = sync.Pool{New: func() any { return new(MatchResult) }}

// Match appends to dst the limits that apply to attrs, in the order of the rules. A cost above 0 replaces the costs
// of the rules. Nil attrs have no attributes. Match looks up an attribute at most once, and only if a rule depends
// on it. now is compared with expiry times; it matters only if the matcher is [Matcher.DependsOnTime].
//
// There may be matches even if the verdict denies the request.
func (m *Matcher) Match(dst []Match, attrs Attributes, cost bucket.Tokens, now bucket.Instant) ([]Match, Verdict) {
	f := founds.Get().(*MatchResult)
	m.Find(f, attrs, cost, now)
	dst, v := append(dst, f.Matches...), f.Verdict
	f.Reset()
	founds.Put(f)
	return dst, v
}

// Find does the work of [Matcher.Match] and also lists the skipped rules. It overwrites f.
func (m *Matcher) Find(f *MatchResult, attrs Attributes, cost bucket.Tokens, now bucket.Instant) {
	s := &f.scratch
	m.begin(s, attrs, cost, now)
	f.Matches, f.Skipped, f.Verdict = f.Matches[:0], f.Skipped[:0], Verdict{}
	if m.exceptions == nil || m.exceptions.apply(m, s, &f.Verdict) {
		rules := m.index.allItems()
		if rules == nil {
			s.found = m.index.find(s.found[:0], m, s)
			rules = s.found
		}
		for _, i := range rules {
			var outcome Outcome
			if f.Matches, outcome = m.consider(f.Matches, s, int(i), &f.Verdict); f.Verdict.Block != nil {
				break
			}
			if outcome == OutcomeLacking {
				f.Skipped = append(f.Skipped, m.rules[i])
			}
		}
		for _, i := range rules {
			r := m.rules[i]
			s.tiers[r.group], s.scopes[r.scope] = untaken, untaken
		}
	}
	s.end()
}

// An Outcome is the result of one rule for one request.
type Outcome uint8

const (
	OutcomeApplies   Outcome = iota // its limits apply to the request
	OutcomeUnmatched                // a clause of its match does not hold
	OutcomeLacking                  // the request lacks an attribute of limit_keys, so the rule is skipped
	OutcomeDenying                  // the request lacks an attribute of limit_keys, and is denied
	OutcomeExempt                   // an override exempts the request from this rule
	OutcomeBlocked                  // an override blocks the request's key under this rule
	OutcomeTaken                    // an earlier rule of its group applied
	OutcomeUnneeded                 // a rule of its policy applied, and this is the fallback_limit
	OutcomeDisabled                 // its mode is off
	OutcomeInactive                 // it is not the time in which it is active
)

// consider evaluates the i'th rule after the earlier rules of its group. If the rule applies, consider appends its
// limits to dst.
func (m *Matcher) consider(dst []Match, s *scratch, i int, v *Verdict) ([]Match, Outcome) {
	r := m.rules[i]
	s.rule = r
	tier, scope := &s.tiers[r.group], &s.scopes[r.scope]
	switch {
	case r.Mode == ModeOff:
		return dst, OutcomeDisabled
	case r.active != nil && !r.active.contains(s.now):
		return dst, OutcomeInactive
	case r.fallback && *scope == taken:
		return dst, OutcomeUnneeded
	case *tier == taken:
		return dst, OutcomeTaken
	case !m.findAlternative(s, r):
		return dst, OutcomeUnmatched
	}
	complete := m.hasAllKeys(s, r)
	if !complete && r.onMissing == inspect.MissingSkip {
		return dst, OutcomeLacking
	}
	shadow := r.Mode == ModeShadow
	if r.Mode.IsPartial() {
		shadow = m.inShadow(s, r, complete)
	}
	switch {
	case shadow && *tier == takenShadow:
		return dst, OutcomeTaken
	case shadow && r.fallback && *scope == takenShadow:
		return dst, OutcomeUnneeded
	}
	*tier = max(*tier, takenShadow)
	if !shadow {
		*tier = taken
	}
	if !r.guard { // a fallback_limit applies beside a guard
		*scope = max(*scope, *tier)
	}
	if !complete && r.onMissing == inspect.MissingDeny {
		if v.Missing == nil && !shadow && !s.shadow {
			v.Missing = r
		}
		return dst, OutcomeDenying
	}
	return m.charge(dst, s, i, shadow || s.shadow, v)
}

// inShadow reports whether r, which is enforced for a share of its keys, is in shadow for the request. A request
// that is denied because it lacks an attribute has no key. Its address and its other attributes then replace the
// key.
func (m *Matcher) inShadow(s *scratch, r *Rule, complete bool) bool {
	s.key = m.appendComponents(s.key[:0], s, r)
	if !complete && r.onMissing == inspect.MissingDeny {
		client := m.fact(s, r.client.slot)
		if !client.present && !m.hasAnyKey(s, r) {
			return true // nothing distinguishes the request from others: a share of one key is none
		}
		s.key = m.keyer.appendComponent(s.key, r.client, client)
	}
	return r.Mode.exempts(spreadKey(r.limitBase(), s.key))
}

func (m *Matcher) hasAnyKey(s *scratch, r *Rule) bool {
	return slices.ContainsFunc(r.keys, func(k component) bool { return m.fact(s, k.slot).present })
}

// appendComponents appends the components of r's key. Their attributes have been looked up.
func (m *Matcher) appendComponents(key []byte, s *scratch, r *Rule) []byte {
	for i := range r.keys {
		key = m.keyer.appendComponent(key, &r.keys[i], &s.facts[r.keys[i].slot])
	}
	return key
}

// charge appends the limits of the i'th rule, which applies, unless an override exempts or blocks the key.
func (m *Matcher) charge(dst []Match, s *scratch, i int, shadow bool, v *Verdict) ([]Match, Outcome) {
	r := m.rules[i]
	limits := r.Limits
	if m.exceptions != nil {
		s.key = m.appendComponents(s.key[:0], s, r)
		if o := m.exceptions.find(m, s, i, s.key); o != nil {
			switch {
			case o.Action == ActionAllow:
				return dst, OutcomeExempt
			case o.Action == ActionBlock:
				if v.Block == nil && !s.shadow {
					v.Block = o.Override
				}
				return dst, OutcomeBlocked
			}
			limits = o.limits
		}
	}
	first := len(dst)
	for i := range limits {
		l := &limits[i]
		dst = append(dst, Match{}) // avoids copying a Match
		match := &dst[len(dst)-1]
		match.Rule, match.Limit, match.Cost, match.Shadow = r, l, s.cost, shadow
		if s.cost <= 0 || l.HoldsSlot() {
			match.Cost = l.cost.fallback
			switch {
			case l.cost.ai != nil:
				var refusal string
				if match.Cost, refusal = m.costAI(s, l); refusal != "" && !shadow && v.TooLarge == nil {
					v.TooLarge, v.Why = r, refusal
				}
			case l.cost.variable:
				f := m.fact(s, l.cost.slot)
				match.Cost = l.cost.amount(f.value, f.present)
			}
		}
	}
	m.setKeys(dst[first:], s, r)
	return dst, OutcomeApplies
}

// setKeys sets the keys of the matches of one rule: the tag, the limit's name and the components.
func (m *Matcher) setKeys(matches []Match, s *scratch, r *Rule) {
	if len(r.keys) == 0 {
		for i := range matches {
			matches[i].Key = matches[i].Limit.prefix
		}
		return
	}
	key := s.key[:0]
	for i := range matches {
		match := &matches[i]
		if key = key[:0]; r.slotBy != nil {
			key = m.keyer.appendTag(key, r.slotBy, &s.facts[r.slotBy.slot])
		}
		key = append(key, match.Limit.prefix...)
		key = m.appendComponents(key, s, r)
		match.Key = s.keys.intern(key)
	}
	s.key = key // keep the grown buffer
}

// findAlternative finds the first alternative of r that holds.
func (m *Matcher) findAlternative(s *scratch, r *Rule) bool {
	for i, clauses := range r.alternatives {
		if s.enterAlternative(i); m.holdAll(s, clauses) {
			return true
		}
	}
	return false
}

// enterAlternative makes an alternative the current one. Another one captures other texts.
func (s *scratch) enterAlternative(i int) {
	s.forgetCaptures()
	s.alternative = i
}

// holdAny reports whether an alternative of an override holds. Without alternatives, it holds.
func (m *Matcher) holdAny(s *scratch, alternatives [][]clause) bool {
	for _, clauses := range alternatives {
		if m.holdAll(s, clauses) {
			return true
		}
	}
	return len(alternatives) == 0
}

func (m *Matcher) holdAll(s *scratch, clauses []clause) bool {
	for i := range clauses {
		if c := &clauses[i]; !c.holds(m.fact(s, c.slot)) {
			return false
		}
	}
	return true
}

// hasAllKeys reports whether the request has every attribute of r's key. It looks up all these attributes.
func (m *Matcher) hasAllKeys(s *scratch, r *Rule) bool {
	all := true
	for i := range r.keys {
		all = m.fact(s, r.keys[i].slot).present && all
	}
	return all
}

func (m *Matcher) fact(s *scratch, slot int) *fact {
	f := &s.facts[slot]
	if f.looked {
		return f
	}
	a := &m.attributes[slot]
	if a.IsCaptured() {
		return m.captureFact(s, slot)
	}
	f.looked = true
	s.lookedUp = append(s.lookedUp, slot)
	if a.has {
		return m.findHas(s, f, slot)
	}
	if s.attrs == nil {
		return f
	}
	if f.value, f.present = s.attrs.Lookup(*a); !f.present {
		f.value = ""
		if m.from[slot] > 0 && m.facts.Find != nil {
			m.derive(s, f, slot)
		}
		return f
	}
	if a.Source == SourceIP {
		addr, err := netip.ParseAddr(f.value)
		if f.addr = clientaddr.Canonical(addr); err != nil {
			f.value, f.present = "", false
		}
	}
	return f
}

// spreadKey hashes a key for [Mode]: FNV-1a, then mixed so that every bit depends on all input bits. It must never
// change, because a new version of the program would enforce a partial rule for different keys.
func spreadKey(rule string, key []byte) uint64 {
	const offset, prime = 14695981039346656037, 1099511628211
	h := uint64(offset)
	for i := range len(rule) {
		h = (h ^ uint64(rule[i])) * prime
	}
	h = (h ^ ':') * prime
	for _, c := range key {
		h = (h ^ uint64(c)) * prime
	}
	h ^= h >> 33
	h *= 0xff51afd7ed558ccd
	h ^= h >> 33
	h *= 0xc4ceb9fe1a85ec53
	return h ^ h>>33
}

func sortUnique(found []int32) []int32 {
	if !slices.IsSorted(found) {
		slices.Sort(found)
	}
	return slices.Compact(found)
}
