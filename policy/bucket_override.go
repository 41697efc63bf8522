// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"net/netip"
	"slices"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/policy/internal/inspect"
)

// keyFacts are the facts that a bucket's key tells about the requests that spend from the bucket.
type keyFacts struct {
	m      *Matcher
	r      *Rule
	values []string // of the key's components
	now    bucket.Instant
}

// An answer tells whether a clause holds for all requests of a bucket.
type answer uint8

const (
	no answer = iota
	unsure
	yes
)

// applyOverrides applies the overrides that affect every request of the bucket, which belongs to the at'th limit of
// the numbered rule.
func (k *keyFacts) applyOverrides(found *Match, number, at int, components string) (v Verdict, err error) {
	var block, allow *exception
	shadowed := false
	for i := range k.m.exceptions.whole.list {
		e := &k.m.exceptions.whole.list[i]
		switch {
		case k.now >= e.expires || k.holds(e.alternatives) != yes:
		case e.Action == ActionBreakGlass:
			return Verdict{Allow: e.Override}, nil
		case e.Action == ActionShadow:
			shadowed = true
		case e.Action == ActionBlock && block == nil:
			block = e
		case e.Action == ActionAllow && allow == nil:
			allow = e
		}
	}
	if x := k.m.exceptions.rules[number]; x != nil {
		if err = k.applyRuleOverrides(x, components, at, found, &block, &allow); err != nil {
			return Verdict{}, err
		}
	}
	found.Shadow = found.Shadow || shadowed
	switch {
	case block != nil && !shadowed:
		v.Block = block.Override
	case allow != nil:
		v.Allow = allow.Override
	}
	return v, nil
}

// applyRuleOverrides applies the overrides of one rule. If several limit overrides match, the first wins, as for requests.
func (k *keyFacts) applyRuleOverrides(x *ruleException, components string, at int, found *Match, block, allow **exception) error {
	all := slices.Clone(x.keys[components])
	for i := range x.list {
		all = append(all, &x.list[i])
	}
	replaced := false
	for _, e := range all {
		holds := yes
		if e.Key == "" {
			holds = k.holds(e.alternatives)
		}
		switch {
		case k.now >= e.expires || holds == no:
		case e.Action == ActionLimit && !replaced && holds == unsure:
			return &KeyError{"its limit is ambiguous: it contains the hash of a value that may match override " + e.ID, ""}
		case e.Action == ActionLimit && !replaced:
			found.Limit, replaced = &e.limits[at], true
		case holds == unsure:
		case k.r.Bucket != "" && e.Key == "": // it does not affect the other rules with the bucket
		case e.Action == ActionBlock && *block == nil:
			*block = e
		case e.Action == ActionAllow && *allow == nil:
			*allow = e
		}
	}
	return nil
}

func (k *keyFacts) holds(alternatives [][]clause) answer {
	if len(alternatives) == 0 {
		return yes
	}
	any := no
	for _, clauses := range alternatives {
		all := yes
		for i := range clauses {
			all = min(all, k.holdsClause(&clauses[i]))
		}
		any = max(any, all)
	}
	return any
}

// holdsClause reports whether c holds. It is unsure about attributes that the key does not contain.
func (k *keyFacts) holdsClause(c *clause) answer {
	for i := range k.r.keys {
		if k.r.keys[i].slot != c.slot {
			continue
		}
		switch part, value := &k.r.keys[i], k.values[i]; {
		case value == "":
			return k.holdsEmpty(c, part)
		case part.bits > 0:
			return holdsNetwork(c, value)
		case isHashed(value):
			return k.holdsHash(c, value)
		default:
			return answerOf(c.holds(&fact{present: true, value: unescape(value)}))
		}
	}
	return unsure
}

func answerOf(holds bool) answer {
	if holds {
		return yes
	}
	return no
}

// holdsEmpty answers for a value that is empty or missing, which a key does not distinguish. An address is never
// empty, and not every rule accepts missing attributes.
func (k *keyFacts) holdsEmpty(c *clause, part *component) answer {
	missing, there := answerOf(c.holds(&fact{})), answerOf(c.holds(&fact{present: true}))
	switch {
	case part.bits > 0 || missing == there:
		return missing
	case k.r.onMissing != inspect.MissingEmpty:
		return there
	}
	return unsure
}

// holdsHash answers for a value that is known only by its hash.
func (k *keyFacts) holdsHash(c *clause, hash string) answer {
	if slices.Contains(c.prefixes, "") {
		return answerOf(!c.negate)
	}
	var buf []byte
	for _, value := range c.exact {
		if buf = k.m.keyer.appendHash(buf[:0], value); string(buf) == hash {
			return answerOf(!c.negate)
		}
	}
	if len(c.prefixes)+len(c.suffixes)+len(c.templates) > 0 {
		return unsure
	}
	return answerOf(c.negate)
}

// holdsNetwork answers for an address or a prefix in a key. A clause network inside the prefix matches only some of
// its addresses.
func holdsNetwork(c *clause, value string) answer {
	if len(c.prefixes) > 0 { // every value is an address
		return answerOf(!c.negate)
	}
	p, err := netip.ParsePrefix(value)
	if err != nil {
		a, _ := addressOf(value)
		p = netip.PrefixFrom(a, a.BitLen())
	}
	none := answerOf(c.negate)
	for _, n := range c.networks {
		switch {
		case !n.Overlaps(p):
		case n.Bits() <= p.Bits():
			return answerOf(!c.negate)
		default:
			none = unsure
		}
	}
	return none
}
