// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/metehq/mete/internal/spell"
)

const (
	// MaxRules bounds the rules of one file, and MaxPolicies the policies of one
	// bundle. More are refused.
	MaxRules    = 10_000
	MaxPolicies = 10_000
)

var (
	// topFields are those that say something of a whole file.
	topFields = []string{"overrides", "kill_switches", "global_shadow", "break_glass", "tests"}

	policyFields = []string{"selector", "rules", "fallback_limit", "mode", "slot_by", "headers", "jitter", "description"}

	laterFields = map[string]string{
		"loop_detection": "", "circuit_breaker": "", "defaults": "",
		"kill_switch_override": ": break_glass lets everything pass, and a switch can be removed",
		"signature":            ": a signature stands in a file of its own, beside this one",
	}

	bundleSchema = schema{
		what: "a bundle",
		fields: slices.Concat([]string{"bundle_version", "issued_at", "expires_at", "slot_by", "headers", "jitter", "description",
			"policies"}, topFields),
		later: laterFields,
	}
	entrySchema = schema{
		what:    "a policy of a bundle",
		fields:  []string{"id", "spec"},
		foreign: foreignEntry, example: `{"id": "api", "spec": {"rules": […]}}`,
		inside: "spec", insideFields: policyFields,
	}
	policySchema = schema{
		what:   "a policy",
		fields: policyFields,
		later:  laterFields, inside: "the top of the file", insideFields: topFields,
	}
	fileSchema = schema{ // of a policy that is a file
		what:   "a policy",
		fields: slices.Concat(policySchema.fields, topFields),
		later:  laterFields,
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
	case root.field("rules") != nil || root.field("fallback_limit") != nil:
		c.top = c.object(root, fileSchema)
		c.policy(c.top)
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
	c.top = o
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
	c.matcher.expires = expires

	c.bundleAnswers = c.readAnswers(o, answers{})
	if f := o.field("description"); f != nil {
		c.text(f, "description", maxDescriptionBytes)
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
		c.id = id
		c.policy(c.object(f, policySchema))
		c.id = ""
	}
	return id
}

// policy reads {"rules": […]}. Tiers do not reach beyond it.
func (c *compiler) policy(o *object) {
	if o == nil {
		return
	}
	c.scope++
	c.policyMode = Enforce
	if f := o.field("mode"); f != nil {
		c.policyMode, _ = c.mode(f)
	}
	if f := o.field("description"); f != nil {
		c.text(f, "description", maxDescriptionBytes)
	}
	c.slotBy = c.bundleSlotBy
	if f := o.field("slot_by"); f != nil {
		c.slotBy = c.readSlotBy(f)
	}
	c.answers = c.readAnswers(o, c.bundleAnswers)
	c.readSelector(o.field("selector"))
	fallback := o.field("fallback_limit")
	var rules []*node
	if f := o.field("rules"); f != nil {
		rules, _ = c.list(f, "rules", fallback == nil, MaxRules)
	} else if fallback == nil {
		o.need("rules", "")
	}
	for _, rule := range rules {
		if len(c.drafts) >= MaxRules {
			c.absent(rule, fmt.Sprintf("the file has more than %d rules", MaxRules), "")
			return
		}
		c.rule(rule, true)
	}
	if fallback != nil {
		c.fallback(fallback)
	}
}
