// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"net/netip"
	"slices"
)

// How many buckets one request could be charged in. What attributes mean is not
// known, so the answer is a bound: rules of different policies whose selectors
// exclude each other are told apart by the index, which is what a request goes
// through, too.

// buckets is how many of them a request under the rule is charged in, at most.
func (r *Rule) buckets() (n int) {
	for i := range r.Limits {
		n += max(r.Limits[i].Shards, 1)
	}
	return n
}

// charges checks how many buckets one request could be charged in.
func (c *compiler) charges() {
	bound, counted, hint := MaxMatches, "", "make the rules tiers of one group, or give policies selectors that exclude each other"
	if slices.ContainsFunc(c.drafts, func(d *draft) bool { return d.buckets() > len(d.Limits) }) {
		bound, counted, hint = maxShardMatches, ", each shard counted", "use fewer shards, or make the rules tiers of one group"
	}
	most, total := map[string]int{}, 0
	var first *draft // with which there are too many
	for _, d := range c.drafts {
		if d.Mode == ModeOff {
			continue
		}
		for _, kind := range d.kinds() {
			if n := d.buckets(); n > most[kind] {
				total, most[kind] = total+n-most[kind], n
			}
		}
		if total > bound && first == nil {
			first = d
		}
	}
	if first != nil {
		c.matcher.index = newIndex(c.matcher.attributes, c.items())
		total = c.worst(c.matcher.index, nil, true)
		if total > bound {
			total = min(total, c.worst(c.matcher.index, nil, false))
		}
		if total > bound {
			c.Absent(first.at, fmt.Sprintf("a request could fall under more than %d limits at once%s", bound, counted), hint)
		}
	}
}

// kinds name those rules of which one at most is charged for a request. One that is
// in force in part is in shadow beside another that is enforced.
func (d *draft) kinds() []string {
	shadow := "shadow " + d.group // groups begin with a digit
	switch {
	case d.Mode == ModeShadow:
		return []string{shadow}
	case d.Mode.Partial():
		return []string{d.group, shadow}
	}
	return []string{d.group}
}

// worst bounds how many buckets a request is charged in that finds its rules in b,
// where others of the groups in charged are charged already. Rules that do not depend
// on the value of b's attribute may be of one group with rules that do, and may exclude
// each other. With tiers, worst counts each group once and takes all of these rules to
// match together; without, it does the reverse. Both are bounds.
func (c *compiler) worst(b *branch, charged map[string]int, tiers bool) (total int) {
	for ; b != nil; b = b.rest {
		if b.slot < 0 {
			return total + c.increase(b.items, charged, nil)
		}
		// What does not depend on the value may be charged whatever that is.
		var rest []int32
		if rest = b.rest.all(nil); tiers && len(rest) <= maxRest {
			inner := map[string]int{}
			for kind, n := range charged {
				inner[kind] = n
			}
			total += c.increase(rest, charged, inner)
			return total + c.worstValue(b, inner, tiers)
		}
		total += c.worstValue(b, charged, tiers)
	}
	return total
}

// maxRest bounds the rules that are counted for every value of an attribute.
const maxRest = 256

// worstValue is worst for the value of b's attribute under which it is worst.
func (c *compiler) worstValue(b *branch, charged map[string]int, tiers bool) int {
	// A value can begin with several prefixes, and be in several networks.
	prefixes, networks, exact := make([]int, len(b.prefixes)), 0, 0
	chain := 0
	for i := range b.prefixes {
		p := &b.prefixes[i]
		if prefixes[i] = c.worst(p.to, charged, tiers); p.outer >= 0 {
			prefixes[i] += prefixes[p.outer]
		}
		chain = max(chain, prefixes[i])
	}
	for v, to := range b.exact {
		n := c.worst(to, charged, tiers)
		if at := b.under(v); at >= 0 {
			n += prefixes[at]
		}
		exact = max(exact, n)
	}
	each := make(map[netip.Prefix]int, len(b.networks))
	for n, to := range b.networks {
		each[n] = c.worst(to, charged, tiers)
	}
	for n, sum := range each {
		for bits := range n.Bits() {
			if outer, err := n.Addr().Prefix(bits); err == nil {
				sum += each[outer]
			}
		}
		networks = max(networks, sum)
	}
	return max(chain, exact, networks)
}

// increase is how many more buckets are charged for rules of which those of one
// kind exclude each other. It notes them in inner, if that is not nil.
func (c *compiler) increase(rules []int32, charged, inner map[string]int) (total int) {
	most := map[string]int{}
	for _, i := range rules {
		d := c.drafts[i]
		for _, kind := range d.kinds() {
			have := max(most[kind], charged[kind])
			if n := d.buckets(); n > have {
				total, most[kind] = total+n-have, n
				if inner != nil {
					inner[kind] = n
				}
			}
		}
	}
	return total
}

// all appends the numbers of all items of b.
func (b *branch) all(items []int32) []int32 {
	for ; b != nil; b = b.rest {
		items = append(items, b.items...)
		for _, to := range b.exact {
			items = to.all(items)
		}
		for i := range b.prefixes {
			items = b.prefixes[i].to.all(items)
		}
		for _, to := range b.networks {
			items = to.all(items)
		}
	}
	return items
}
