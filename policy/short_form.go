// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"slices"

	"github.com/metehq/mete/internal/parse"
)

// LimitFields returns the names of the fields of a limit, in the usual order. An algorithm_config has them, an
// entry of limits has them, and a rule in the short form has them itself.
func LimitFields() []string { return namesIn(inLimits) }

// findOwnLimit returns the fields of a limit that a rule or an override has itself, as an object. It returns nil
// without such fields.
func findOwnLimit(n *parse.Node) *parse.Node {
	own := &parse.Node{Kind: parse.KindObject, Path: n.Path, At: n.At}
	for _, f := range n.Fields {
		if limitTable.Has(f.Name) {
			own.Fields = append(own.Fields, f)
		}
	}
	if len(own.Fields) == 0 {
		return nil
	}
	return own
}

// moveOwnLimit returns n with its own fields of a limit in an algorithm_config, as an [Override] has them.
func moveOwnLimit(n *parse.Node) *parse.Node {
	own := findOwnLimit(n)
	if own == nil {
		return n
	}
	moved := *n
	moved.Fields = []parse.Member{{Name: "algorithm_config", Value: own}}
	for _, f := range n.Fields {
		if !limitTable.Has(f.Name) {
			moved.Fields = append(moved.Fields, f)
		}
	}
	return &moved
}

// readLimitOwner reads a rule, a fallback_limit or an override: an object that can have the fields of its algorithm.
// The algorithm is nil if it is unknown.
func (c *compiler) readLimitOwner(n *parse.Node, in place) (*parse.Object, *algorithm) {
	a := c.readAlgorithm(n, algorithms[0])
	if a != nil {
		return c.Object(n, a.owners[in]), a
	}
	return c.Object(n, map[place]*parse.Table{inRule: ruleTable, inFallback: fallbackTable, inOverride: overrideTable}[in]), nil
}

// checkForms reports a rule that has its limit in two forms, and a rule without a limit. It returns whether there is
// a limit to read.
func (c *compiler) checkForms(o *parse.Object, a *algorithm, in place) bool {
	config, list, own := o.Field("algorithm_config"), o.Field("limits"), findOwnLimit(o.Node)
	if own != nil { // a field that rules and limits share is the rule's
		own.Fields = slices.DeleteFunc(own.Fields, func(f parse.Member) bool { return isRuleField(f.Name, in) })
		if len(own.Fields) == 0 {
			own = nil
		}
	}
	holder := "algorithm_config"
	if list != nil {
		holder = "limits"
	}
	switch {
	case config != nil && list != nil:
		c.AddAt(list, "a rule has either algorithm_config or limits, not both", "move algorithm_config into limits")
	case own != nil && (config != nil || list != nil):
		for _, f := range own.Fields {
			c.AddAt(f.Value, fmt.Sprintf("%s must not stand beside %s", f.Name, holder), "it belongs in "+holder)
		}
		return true
	case config != nil || list != nil || own != nil:
		return true
	case o.HasMisspelled(append(LimitFields(), "algorithm_config", "limits")...):
	case a != nil:
		c.AddAt(o.Node, "the limit is missing", fmt.Sprintf("write %s, or several limits in limits", a.example[1:len(a.example)-1]))
	}
	return false
}

// isRuleField reports whether a rule has a reader of its own for a field. No such field belongs to an override.
func isRuleField(name string, in place) bool {
	return slices.ContainsFunc(ruleFields, func(f *field) bool { return f.name == name && f.in&in != 0 })
}
