// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/metehq/mete/pgstore/rules"
	"github.com/metehq/mete/policy"
)

// set changes a rule or adds it.
func (c *rulesCommand) set(ctx context.Context, source *rules.Source) error {
	if c.isSet("spec") {
		var object map[string]json.RawMessage
		if err := json.Unmarshal([]byte(c.spec), &object); err != nil || object == nil {
			return fmt.Errorf("--spec: must be a JSON object, not %.60q", c.spec)
		}
	}
	return c.edit(ctx, source, func(set *rules.Set) error {
		i, err := c.find(set.Rules)
		if err != nil {
			return err
		}
		if i < 0 {
			if c.pattern == "" && !c.isSet("spec") {
				return unmetError(fmt.Sprintf("there is no rule %q; to add it, set --pattern", c.operands[0]))
			}
			if err := c.checkVersion(0); err != nil {
				return err
			}
			set.Rules = append(set.Rules, rules.Rule{Active: true, Name: strings.Join(c.operands, "")})
			i = len(set.Rules) - 1
		} else if err := c.checkVersion(set.Rules[i].Version); err != nil {
			return err
		}
		return c.change(&set.Rules[i])
	})
}

// find returns the index of the rule to change, or −1 if it does not exist.
func (c *rulesCommand) find(list []rules.Rule) (int, error) {
	if len(c.operands) == 1 {
		return slices.IndexFunc(list, func(r rules.Rule) bool { return r.Name == c.operands[0] }), nil
	}
	var found, active []int
	for i, r := range list {
		if r.KeyPattern == c.pattern && r.Plan == c.plan {
			if found = append(found, i); r.Active {
				active = append(active, i)
			}
		}
	}
	if len(active) == 1 {
		return active[0], nil
	}
	switch len(found) {
	case 0:
		return -1, nil
	case 1:
		return found[0], nil
	}
	names := make([]string, len(found))
	for i, at := range found {
		names[i] = list[at].Name
	}
	return 0, unmetError(fmt.Sprintf("%d rules have the pattern %s and that plan: name one of them: %s", len(found), c.pattern, strings.Join(names, ", ")))
}

// change applies the flags to r.
func (c *rulesCommand) change(r *rules.Rule) error {
	for name, field := range map[string]struct{ to, from *string }{
		"pattern": {&r.KeyPattern, &c.pattern}, "scope": {&r.Scope, &c.scope}, "plan": {&r.Plan, &c.plan},
		"description": {&r.Description, &c.description},
	} {
		if c.isSet(name) {
			*field.to = *field.from
		}
	}
	if c.isSet("pattern") && !c.isSet("scope") {
		r.Scope = "" // the database finds the scope of the pattern
	}
	if c.isSet("priority") {
		r.Priority = c.priority
	}
	if c.isSet("policy") {
		r.Policy = c.policy
	}
	return c.changeSpec(r)
}

// changeSpec sets the fields of --spec in spec and removes fields that are null.
func (c *rulesCommand) changeSpec(r *rules.Rule) error {
	spec, err := parseObject(r.Spec)
	if err != nil {
		return fmt.Errorf("rule %q: its spec is not a JSON object: %w", r.Name, err)
	}
	fields, err := parseObject(json.RawMessage(c.spec))
	if err != nil {
		return err
	}
	if c.isSet("mode") {
		fields["mode"] = textJSON(c.mode)
		if c.mode == "" || c.mode == policy.ModeEnforce.String() {
			fields["mode"] = json.RawMessage("null")
		}
	}
	for name, value := range fields {
		if spec[name] = value; string(value) == "null" {
			delete(spec, name)
		}
	}
	if err := c.changeLimit(r, spec); err != nil {
		return err
	}
	r.Spec, err = json.Marshal(spec)
	return err
}

// checkVersion compares a rule's version with --if-version, if that is set. A rule that does not exist has version
// 0.
func (c *rulesCommand) checkVersion(version int64) error {
	if c.isSet("if-version") && c.version != version {
		return unmetError(fmt.Sprintf("the rule has version %d, not %d: it has changed in the meantime", version, c.version))
	}
	return nil
}

func (c *rulesCommand) enable(ctx context.Context, source *rules.Source) error {
	return c.forEach(ctx, source, func(set *rules.Set, i int) { set.Rules[i].Active = true })
}

func (c *rulesCommand) disable(ctx context.Context, source *rules.Source) error {
	return c.forEach(ctx, source, func(set *rules.Set, i int) { set.Rules[i].Active = false })
}

func (c *rulesCommand) remove(ctx context.Context, source *rules.Source) error {
	return c.forEach(ctx, source, func(set *rules.Set, i int) { set.Rules = slices.Delete(set.Rules, i, i+1) })
}

// forEach calls do for every named rule.
func (c *rulesCommand) forEach(ctx context.Context, source *rules.Source, do func(set *rules.Set, i int)) error {
	return c.edit(ctx, source, func(set *rules.Set) error {
		for _, name := range c.operands {
			i := slices.IndexFunc(set.Rules, func(r rules.Rule) bool { return r.Name == name })
			if i < 0 {
				return unmetError(fmt.Sprintf("there is no rule %q", name))
			}
			if err := c.checkVersion(set.Rules[i].Version); err != nil {
				return err
			}
			do(set, i)
		}
		return nil
	})
}
