// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"strconv"
	"time"

	"github.com/metehq/mete/internal/spell"
)

const (
	// MaxRules bounds the rules of one file, MaxPolicies the policies of one
	// bundle. More are refused.
	MaxRules    = 1000
	MaxPolicies = 100
)

var (
	bundleSchema = schema{
		what:   "a bundle",
		fields: []string{"bundle_version", "issued_at", "expires_at", "slot_by", "policies"},
		later:  map[string]string{"kill_switches": "", "kill_switch_override": "", "global_shadow": "", "defaults": "", "signature": ""},
	}
	entrySchema = schema{
		what:   "a policy of a bundle",
		fields: []string{"id", "spec"},
	}
	policySchema = schema{
		what:   "a policy",
		fields: []string{"rules", "mode", "slot_by", "description"},
		later: map[string]string{
			"selector": ": every rule applies everywhere; match on path, method or host in its rules instead", "fallback_limit": "",
			"loop_detection": "", "circuit_breaker": "", "signature": "", "kill_switches": "", "global_shadow": "",
		},
	}
)

// file reads a whole file, in whichever of its three shapes it has.
func (c *compiler) file(root *node) {
	switch {
	case root.kind != isObject:
		c.add(root, "a policy file must be an object", `write {"rules": […]}`)
	case root.field("policies") != nil:
		c.bundle(root)
	case root.field("spec") != nil:
		c.entry(root)
	case root.field("rules") != nil:
		c.policy(root)
	case isRule(root):
		c.rule(root, false)
	default:
		hint := `write {"rules": […]}`
		if len(root.fields) > 0 {
			if near := spell.Nearest(root.fields[0].name, []string{"rules", "policies"}); near != "" {
				hint = fmt.Sprintf("did you mean %q?", near)
			}
		}
		c.absent(root, "the file has neither rules, nor policies, nor is it a rule itself", hint)
	}
}

// isRule reports whether n has any field that only rules have.
func isRule(n *node) bool {
	for _, f := range ruleSchema.fields {
		if f != "description" && f != "mode" && f != "slot_by" && n.field(f) != nil {
			return true
		}
	}
	return false
}

// bundle reads {"policies": […]}.
func (c *compiler) bundle(root *node) {
	o := c.object(root, bundleSchema)
	if n := o.field("bundle_version"); n != nil {
		v, err := strconv.ParseInt(n.text, 10, 64)
		if n.kind != isNumber || err != nil || v <= 0 {
			c.add(n, "bundle_version must be a whole number above 0", "")
		}
		c.matcher.version = v
	}
	issued := c.instant(o.field("issued_at"), "issued_at")
	expires := c.instant(o.field("expires_at"), "expires_at")
	switch n := o.field("expires_at"); {
	case expires.IsZero():
	case !issued.IsZero() && !expires.After(issued):
		c.add(n, "expires_at must be after issued_at", "")
	case !expires.After(c.now):
		c.add(n, "the bundle has expired", "")
	}

	if f := o.field("slot_by"); f != nil {
		c.bundleSlotBy = c.readSlotBy(f)
	}
	entries, _ := c.list(o.field("policies"), "policies", true, MaxPolicies)
	ids := map[string]bool{}
	for _, n := range entries {
		id := c.entry(n)
		if id != "" && ids[id] {
			c.add(n.field("id"), "policy id is taken by an earlier policy", "")
		}
		ids[id] = true
	}
}

// instant reads an optional instant.
func (c *compiler) instant(n *node, what string) time.Time {
	if n == nil {
		return time.Time{}
	}
	t, err := time.Parse(time.RFC3339, n.text)
	if n.kind != isText || err != nil {
		c.add(n, what+" must be an instant", "as in 2026-01-02T15:04:05Z")
		return time.Time{}
	}
	return t
}

// entry reads one policy of a bundle and returns its id, "" for none.
func (c *compiler) entry(n *node) (id string) {
	o := c.object(n, entrySchema)
	if o == nil {
		return ""
	}
	if f := o.need("id", ""); f != nil {
		id, _ = c.name(f, "policy id", MaxNameBytes)
	}
	if f := o.need("spec", `write {"id": "…", "spec": {"rules": […]}}`); f != nil {
		c.policy(f)
	}
	return id
}

// policy reads {"rules": […]}. Tiers do not reach beyond it.
func (c *compiler) policy(n *node) {
	o := c.object(n, policySchema)
	if o == nil {
		return
	}
	c.scope++
	c.shadow = false
	if f := o.field("mode"); f != nil {
		mode, _ := c.choice(f, "mode", []string{"enforce", "shadow"}, nil)
		c.shadow = mode == "shadow"
	}
	if f := o.field("description"); f != nil {
		c.text(f, "description", maxDescriptionBytes)
	}
	c.slotBy = c.bundleSlotBy
	if f := o.field("slot_by"); f != nil {
		c.slotBy = c.readSlotBy(f)
	}
	f := o.need("rules", "")
	if f == nil {
		return
	}
	rules, _ := c.list(f, "rules", true, MaxRules)
	for _, rule := range rules {
		if len(c.drafts) == MaxRules {
			c.absent(rule, fmt.Sprintf("the file has more than %d rules", MaxRules), "")
			return
		}
		c.rule(rule, true)
	}
}
