// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/metehq/mete/internal/parse"
)

// Rules with the same field bucket charge one bucket per key, each with its own cost. The first rule has the limit
// and the limit_keys. Later rules omit them or repeat them. These rules are tiers, so a request is charged by one of
// them: the first that matches.

// A bucketName identifies a shared bucket. Rules of different policies do not share one.
type bucketName struct {
	scope int
	name  string
}

// ownLimitFields are the fields of a limit without its costs.
func ownLimitFields() []string {
	return slices.DeleteFunc(LimitFields(), func(name string) bool {
		return slices.Contains(costFields, name) || name == "cost_key" || name == "charge_on" || name == "penalty"
	})
}

func (c *compiler) readBucketName(d *draft, n *parse.Node) {
	d.Bucket, _ = c.Name(n, "bucket", MaxNameBytes)
}

// findBucket returns the earlier rule with the bucket of a rule, or nil.
func (c *compiler) findBucket(o *parse.Object) *draft {
	n := o.Field("bucket")
	if n == nil || n.Kind != parse.KindText {
		return nil
	}
	return c.buckets[bucketName{max(c.scope, 0), n.Text}]
}

// limitBase returns the name that the names of r's limits begin with.
func (r *Rule) limitBase() string { return cmp.Or(r.Bucket, r.Name) }

// inheritBucket gives a rule the key of the earlier rule with its bucket.
func (c *compiler) inheritBucket(d *draft, o *parse.Object) {
	first := d.sharesWith
	if n := o.Field("limit_keys"); n == nil {
		d.LimitKeys, d.keysOK = first.LimitKeys, first.keysOK
	} else if d.keysOK && first.keysOK && !slices.EqualFunc(d.LimitKeys, first.LimitKeys, func(a, b Attribute) bool { return a.text == b.text }) {
		c.addBucketError(n, d, "limit_keys differ", "remove limit_keys")
	}
	if n := o.Field("on_missing"); n == nil {
		d.onMissing = first.onMissing
	} else if d.onMissing != first.onMissing {
		c.addBucketError(n, d, "on_missing differs", "remove on_missing")
	}
	if n := o.Field("on_full"); n == nil {
		d.OnFull = first.OnFull
	} else if d.OnFull != first.OnFull {
		c.addBucketError(n, d, "on_full differs", "remove on_full")
	}
	if n := o.Field("slot_by"); n == nil {
		d.slotBy = first.slotBy
	} else if d.slotBy != nil && (first.slotBy == nil || d.slotBy.text != first.slotBy.text) {
		c.addBucketError(n, d, "slot_by differs", "remove slot_by")
	}
}

// checkBucket checks what rules with one bucket have in common.
func (c *compiler) checkBucket(d *draft, o *parse.Object) {
	first := d.sharesWith
	if n := o.Field("group"); n == nil {
		d.group, d.groupName = first.group, first.groupName
	} else if d.group != "" && first.group != "" && d.group != first.group {
		c.addBucketError(n, d, "group differs", "remove group: rules with one bucket are tiers")
	}
	if d.Mode != first.Mode && d.Mode != ModeOff && first.Mode != ModeOff {
		at := o.Field("mode")
		if at == nil {
			at = o.Node
		}
		c.AddAt(at, fmt.Sprintf("the mode differs from rule %q, which has the same bucket", first.Name),
			"use one mode, because a rule in shadow must not spend the tokens of an enforced rule")
	}
}

// sharePenalty gives the limits of d the penalties of the first rule with the same bucket. A penalty belongs to the key,
// so that a rule without it would admit the key.
func (c *compiler) sharePenalty(d *draft) {
	first := d.sharesWith
	for i := range d.Limits {
		if len(d.Limits) != len(first.Limits) {
			return // an error is reported
		}
		own, shared := &d.Limits[i].Penalty, first.Limits[i].Penalty
		if d.penalty != nil && !d.penalty.Equal(shared) || *own != nil && !(*own).Equal(shared) {
			at := d.penaltyAt
			if at == nil {
				at = d.at
			}
			c.addBucketError(at, d, "the penalty differs", "set penalty in the first rule only")
			return
		}
		*own = shared
	}
}

func (c *compiler) addBucketError(n *parse.Node, d *draft, what, hint string) {
	c.AddAt(n, fmt.Sprintf("%s from rule %q, which has the same bucket", what, d.sharesWith.Name), hint)
}

// readSharedLimits reads the limits of a rule with the bucket of an earlier rule. The rule has its own costs.
func (c *compiler) readSharedLimits(d *draft, o *parse.Object, a *algorithm) {
	first := d.sharesWith
	if o.Count(append(ownLimitFields(), "algorithm", "algorithm_config", "limits")...) > 0 {
		c.repeated = true
		c.readLimits(d.Rule, o, a, inRule)
		c.repeated = false
		if len(d.Limits) > 0 && !slices.EqualFunc(d.Limits, first.Limits, sameBucket) {
			c.addBucketError(o.Node, d, "the limit differs", "remove the limit, except its costs")
		}
		return
	}
	d.Limits = slices.Clone(first.Limits)
	for i := range d.Limits {
		l := &d.Limits[i]
		most := l.Bucket.Capacity()
		if l.Bucket.Queued() {
			most += l.Bucket.MaxReserved()
		}
		if l.path = o.Path; l.HoldsSlot() {
			continue
		}
		l.chargeOn, l.onGiven = d.chargeOn, false
		l.cost, l.costGiven = c.readCost(o, d.chargeOn, most, fmt.Sprintf("capacity of %v", most)), o.Count(costFields...) > 0
		l.defaults = o.Field("default_cost") != nil
	}
}

// sameBucket reports whether the limits l and k can share buckets.
func sameBucket(l, k Limit) bool {
	return l.Name == k.Name && l.Bucket == k.Bucket && l.Rate == k.Rate && max(l.Shards, 1) == max(k.Shards, 1) && l.Leased == k.Leased && slices.Equal(l.Stages, k.Stages)
}

// sharing returns the numbers of the rules with the bucket of the i'th rule, including i.
func (c *compiler) sharing(i int) (all []int) {
	r := c.rules()[i]
	if r.Bucket == "" {
		return []int{i}
	}
	for k, other := range c.rules() {
		if other.Bucket == r.Bucket && other.scope == r.scope {
			all = append(all, k)
		}
	}
	return all
}

// costsOf returns e, which replaces limits of another rule with the bucket of r, for requests of r. They keep the
// costs of r, unless the override is for a key and sets the cost.
func (e exception) costsOf(r *Rule) exception {
	e.limits = slices.Clone(e.limits)
	for i := range e.limits {
		l := &e.limits[i]
		switch {
		case l.Override == nil:
			*l = r.Limits[i]
		case e.Key == "" || !l.costGiven:
			l.cost = r.Limits[i].cost
		}
		if e.Key == "" || !l.onGiven {
			l.chargeOn = r.Limits[i].chargeOn
		}
	}
	return e
}

func (r *Rule) showBucket() (string, bool) { return r.Bucket, true }
