// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"slices"

	"github.com/metehq/mete/internal/parse"
)

// A policy that says slot_by puts the buckets of one tenant into one slot of a
// Redis Cluster, where one script reaches all of them: the keys of its rules begin
// with a hash tag, the tenant's value in braces.
//
//	{acme}free:tenant=acme|path=/v1/users
//
// The tag is made of an attribute that the key has, so that it makes two of no
// bucket: a rule without that attribute in its limit_keys has a bucket that
// tenants share, and no tag. It makes one of no two either, as the rest of the key
// is what it would be without. No value has a brace, and no other key begins with
// one.

// slotBy reads the attribute whose value tags the keys of a rule.
func (c *compiler) slotBy(d *draft, n *parse.Node) {
	d.slotBy = nil
	if a, ok := c.attribute(n); ok {
		d.slotBy = &a
	}
}

// tag finds what the keys of a rule are tagged with.
func (c *compiler) tag(d *draft) {
	if d.slotBy == nil {
		return
	}
	i := slices.IndexFunc(d.LimitKeys, func(a Attribute) bool { return a.text == d.slotBy.text })
	switch {
	case i < 0:
		c.warn(d.at, "outside-slot", fmt.Sprintf("limit_keys have no %v: in a cluster the rule's buckets are not in the slots of slot_by", d.slotBy), "")
	case d.LimitKeys[i].Bits < d.slotBy.Bits:
		c.warn(d.at, "outside-slot", fmt.Sprintf("limit_keys have a shorter prefix than the %v of slot_by: in a cluster the rule's buckets are not in its slots", d.slotBy.Spelled()), "")
	default:
		by := d.keys[i]
		by.label, by.bits = "", d.slotBy.Bits
		d.Rule.slotBy, d.slotted = &by, d.slotBy.Spelled()
	}
}

// appendTag appends the tag of a key. An attribute that is missing or empty, which
// a key does not tell apart, makes none: Redis would not take it for one.
func (k *keyer) appendTag(dst []byte, by *component, f *fact) []byte {
	if f.value == "" {
		return dst
	}
	return append(k.appendComponent(append(dst, tagOpen...), by, f), tagClose...)
}
