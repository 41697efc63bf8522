// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/metehq/mete/internal/parse"
	"github.com/metehq/mete/internal/spell"
)

const (
	// MaxRules bounds the rules of one file, and maxPolicies the policies of one bundle.
	MaxRules    = 10_000
	maxPolicies = 10_000
)

// readFile reads a whole file in any of its three forms.
func (c *compiler) readFile(root *parse.Node) {
	switch {
	case root.Kind != parse.KindObject:
		c.Add(root, "a policy file must be an object", `write {"rules": […]}`)
	case root.Field("policies") != nil:
		c.readBundle(root)
	case root.Field("spec") != nil:
		c.readEntry(root)
	case root.Field("rules") != nil || root.Field("fallback_limit") != nil:
		c.top = c.Object(root, fileTable)
		c.readPrices(root.Field("prices"))
		c.readPolicy(c.top)
	case isRule(root):
		c.readRule(root, false)
	default:
		hint := `write {"rules": […]}`
		if len(root.Fields) > 0 {
			if near := spell.Nearest(root.Fields[0].Name, []string{"rules", "policies"}); near != "" {
				hint = fmt.Sprintf("did you mean %q?", near)
			}
		}
		c.AddAt(root, "the file has no rules and no policies, and is not a single rule", hint)
	}
}

// isRule reports whether n has a field of rules that policies do not have.
func isRule(n *parse.Node) bool {
	return slices.ContainsFunc(namesIn(inRule|inLimits), func(name string) bool { return n.Field(name) != nil && !policyTable.Has(name) })
}

func (c *compiler) readBundle(root *parse.Node) {
	o := c.Object(root, bundleTable)
	c.top = o
	if n := o.Field("bundle_version"); n != nil {
		v, err := strconv.ParseInt(n.Text, 10, 64)
		if n.Kind != parse.KindNumber || err != nil || v <= 0 {
			c.Add(n, "bundle_version must be a whole number above 0", "")
		}
		c.matcher.version = v
	}
	issued, expires := c.Instant(o.Field("issued_at"), "issued_at"), c.Instant(o.Field("expires_at"), "expires_at")
	switch n := o.Field("expires_at"); {
	case expires.IsZero():
	case !issued.IsZero() && !expires.After(issued):
		c.Add(n, "expires_at must be after issued_at", "")
	case !expires.After(c.now):
		c.Add(n, "the bundle has expired", "")
	}
	c.matcher.expires = expires
	c.readPrices(root.Field("prices"))
	c.readRuleFields(&c.bundled, o, inBundle)
	entries, _ := c.Items(o.Field("policies"), "policies", true, maxPolicies)
	ids := map[string]bool{}
	for _, n := range entries {
		id := c.readEntry(n)
		if id != "" && ids[id] {
			c.Add(n.Field("id"), "policy id is already used by an earlier policy", "")
		}
		ids[id] = true
	}
}

func (c *compiler) readEntry(n *parse.Node) (id string) {
	o := c.Object(n, entryTable)
	if o == nil {
		return ""
	}
	if f := o.Require("id", ""); f != nil {
		id, _ = c.Name(f, "policy id", MaxNameBytes)
	}
	if f := o.Require("spec", `write {"id": "…", "spec": {"rules": […]}}`); f != nil {
		c.id = id
		c.readPolicy(c.Object(f, policyTable))
		c.id = ""
	}
	return id
}

// readPolicy reads {"rules": […]}. Tiers do not span policies.
func (c *compiler) readPolicy(o *parse.Object) {
	if o == nil {
		return
	}
	c.scope++
	c.shared = c.bundled.inherit()
	c.readRuleFields(&c.shared, o, inPolicy)
	c.readSelector(o.Field("selector"))
	fallback := o.Field("fallback_limit")
	var rules []*parse.Node
	if f := o.Field("rules"); f != nil {
		rules, _ = c.Items(f, "rules", fallback == nil, MaxRules)
	} else if fallback == nil {
		o.Require("rules", "")
	}
	first := len(c.drafts)
	for _, rule := range rules {
		if len(c.drafts) >= MaxRules {
			c.AddAt(rule, fmt.Sprintf("the file has more than %d rules", MaxRules), "")
			return
		}
		c.readRule(rule, true)
	}
	if fallback != nil {
		c.readFallback(fallback)
	}
	c.readGuards(o, c.drafts[first:])
}
