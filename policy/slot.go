// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"slices"

	"github.com/metehq/mete/internal/parse"
)

// slot_by puts the buckets of one tenant into one slot of a Redis Cluster, where one script reaches all of them.
// Keys then begin with a hash tag, the tenant's value in braces:
//
//	{acme}free:tenant=acme|path=/v1/users
//
// The tag comes from an attribute of the key, so it never splits a bucket. Tenants share the buckets of a rule
// without that attribute, and these keys have no tag. The tag never merges buckets, because the rest of the key is
// unchanged. Values contain no braces, and no other key begins with one.

func (c *compiler) readSlotBy(d *draft, n *parse.Node) {
	d.slotBy = nil
	if a, ok := c.readAttribute(n); ok {
		d.slotBy = &a
	}
}

func (c *compiler) setTag(d *draft) {
	if d.slotBy == nil {
		return
	}
	i := slices.IndexFunc(d.LimitKeys, func(a Attribute) bool { return a.text == d.slotBy.text })
	switch {
	case i < 0:
		c.warn(d.at, "outside-slot", fmt.Sprintf("limit_keys do not contain %v: in a cluster, the rule's buckets are not in the slots of slot_by", d.slotBy), "")
	case d.LimitKeys[i].Bits < d.slotBy.Bits:
		c.warn(d.at, "outside-slot", fmt.Sprintf("limit_keys have a shorter prefix than the %v of slot_by: in a cluster, the rule's buckets are not in its slots", d.slotBy.Spelling()), "")
	default:
		by := d.keys[i]
		by.label, by.bits = "", d.slotBy.Bits
		d.Rule.slotBy, d.slotText = &by, d.slotBy.Spelling()
	}
}

// appendTag appends the tag of a key. A key with a missing or empty attribute has no tag, because Redis does not
// recognize an empty tag.
func (k *keyer) appendTag(dst []byte, by *component, f *fact) []byte {
	if f.value == "" {
		return dst
	}
	return append(k.appendComponent(append(dst, tagOpen...), by, f), tagClose...)
}
