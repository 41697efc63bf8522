// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"net/netip"
	"slices"
)

// The compiler bounds the number of buckets that one request can be charged in. It does not know the meaning of
// attributes. Through the index, it recognizes rules of different policies with selectors that exclude each other.

// bucketCount returns the largest number of buckets that the rule charges for one request.
func (r *Rule) bucketCount() (n int) {
	for i := range r.Limits {
		n += max(r.Limits[i].Shards, 1)
	}
	return n
}

// checkCharges reports a policy under which one request could be charged in too many buckets.
func (c *compiler) checkCharges() {
	bound, counted, hint := MaxMatches, "", "make the rules tiers of one group, or give the policies mutually exclusive selectors"
	if slices.ContainsFunc(c.drafts, func(d *draft) bool { return d.bucketCount() > len(d.Limits) }) {
		bound, counted, hint = maxShardMatches, ", counting each shard", "use fewer shards, or make the rules tiers of one group"
	}
	most, total := map[string]int{}, 0
	var first *draft // the first draft above the bound
	for _, d := range c.drafts {
		if d.Mode == ModeOff {
			continue
		}
		for _, kind := range d.chargeKinds() {
			if n := d.bucketCount(); n > most[kind] {
				total, most[kind] = total+n-most[kind], n
			}
		}
		if total > bound && first == nil {
			first = d
		}
	}
	if first != nil {
		c.matcher.index = newIndex(c.matcher.attributes, c.enabledItems())
		total = c.maxBuckets(c.matcher.index, nil, true)
		if total > bound {
			total = min(total, c.maxBuckets(c.matcher.index, nil, false))
		}
		if total > bound {
			c.AddAt(first.at, fmt.Sprintf("more than %d limits could apply to one request%s", bound, counted), hint)
		}
	}
}

// chargeKinds returns the sets of mutually exclusive rules that d belongs to: a request is charged by at most one
// rule of each set. A partially enforced rule belongs to two sets, because some of its keys are in shadow.
func (d *draft) chargeKinds() []string {
	shadow := "shadow " + d.group // groups begin with a digit
	switch {
	case d.Mode == ModeShadow:
		return []string{shadow}
	case d.Mode.IsPartial():
		return []string{d.group, shadow}
	}
	return []string{d.group}
}

// maxBuckets bounds the number of buckets that a request with rules in b is charged in. charged has the buckets per
// group that are already counted. Rules that do not depend on the value of b's attribute may share a group with
// rules that do, and may exclude each other. With tiers, maxBuckets counts each group once and assumes that all
// these rules match together. Without tiers, it does the reverse. Both results are upper bounds.
func (c *compiler) maxBuckets(b *branch, charged map[string]int, tiers bool) (total int) {
	for ; b != nil; b = b.rest {
		if b.slot < 0 {
			return total + c.countBuckets(b.items, charged, nil)
		}
		// Rules that do not depend on the value may be charged with any value.
		var rest []int32
		if rest = b.rest.appendItems(nil); tiers && len(rest) <= maxRest {
			inner := map[string]int{}
			for kind, n := range charged {
				inner[kind] = n
			}
			total += c.countBuckets(rest, charged, inner)
			return total + c.maxBucketsOfValue(b, inner, tiers)
		}
		total += c.maxBucketsOfValue(b, charged, tiers)
	}
	return total
}

// maxRest bounds the rules that are counted again for every value of an attribute.
const maxRest = 256

// maxBucketsOfValue is like maxBuckets, for the value of b's attribute that charges the most buckets.
func (c *compiler) maxBucketsOfValue(b *branch, charged map[string]int, tiers bool) int {
	// A value can have several prefixes, and be in several networks.
	prefixes, networks, exact := make([]int, len(b.prefixes)), 0, 0
	chain := 0
	for i := range b.prefixes {
		p := &b.prefixes[i]
		if prefixes[i] = c.maxBuckets(p.to, charged, tiers); p.outer >= 0 {
			prefixes[i] += prefixes[p.outer]
		}
		chain = max(chain, prefixes[i])
	}
	suffixes, ended := b.maxBucketsOfSuffixes(func(to *branch) int { return c.maxBuckets(to, charged, tiers) })
	templates := make([]int, len(b.trees))
	for i, to := range b.trees {
		templates[i] = c.maxBuckets(to, charged, tiers)
	}
	if b.tree != nil {
		ended += b.tree.mostOf(templates)
	}
	for v, to := range b.exact {
		n := c.maxBuckets(to, charged, tiers) + suffixes(v)
		if b.tree != nil {
			for _, number := range b.tree.find(nil, v) {
				n += templates[number]
			}
		}
		if at := b.longestPrefix(v); at >= 0 {
			n += prefixes[at]
		}
		exact = max(exact, n)
	}
	each := make(map[netip.Prefix]int, len(b.networks))
	for n, to := range b.networks {
		each[n] = c.maxBuckets(to, charged, tiers)
	}
	for n, sum := range each {
		for bits := range n.Bits() {
			if outer, err := n.Addr().Prefix(bits); err == nil {
				sum += each[outer]
			}
		}
		networks = max(networks, sum)
	}
	return max(chain+ended, exact, networks)
}

// maxBucketsOfSuffixes returns a function that counts the buckets of the suffixes of a host, and the largest count of
// any host. count counts the buckets of a branch.
func (b *branch) maxBucketsOfSuffixes(count func(*branch) int) (of func(host string) int, most int) {
	each := make(map[string]int, len(b.suffixes))
	for v, to := range b.suffixes {
		each[v] = count(to)
	}
	of = func(host string) (sum int) {
		for i := 1; i < len(host); i++ {
			if host[i] == '.' {
				sum += each[host[i:]]
			}
		}
		return sum
	}
	for v := range each {
		most = max(most, of("x"+v))
	}
	return of, most
}

// countBuckets returns the number of additional buckets that rules charge. Rules of one kind exclude each other. It
// adds its counts to inner unless inner is nil.
func (c *compiler) countBuckets(rules []int32, charged, inner map[string]int) (total int) {
	most := map[string]int{}
	for _, i := range rules {
		d := c.drafts[i]
		for _, kind := range d.chargeKinds() {
			have := max(most[kind], charged[kind])
			if n := d.bucketCount(); n > have {
				total, most[kind] = total+n-have, n
				if inner != nil {
					inner[kind] = n
				}
			}
		}
	}
	return total
}

func (b *branch) appendItems(items []int32) []int32 {
	for ; b != nil; b = b.rest {
		items = append(items, b.items...)
		for _, to := range b.exact {
			items = to.appendItems(items)
		}
		for i := range b.prefixes {
			items = b.prefixes[i].to.appendItems(items)
		}
		for _, to := range b.suffixes {
			items = to.appendItems(items)
		}
		for _, to := range b.trees {
			items = to.appendItems(items)
		}
		for _, to := range b.networks {
			items = to.appendItems(items)
		}
	}
	return items
}
