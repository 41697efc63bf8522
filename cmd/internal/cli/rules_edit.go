// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/metehq/mete/internal/prose"
	"github.com/metehq/mete/internal/visible"
	"github.com/metehq/mete/pgstore/rules"
	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/policyyaml"
)

func (c *rulesCommand) edit(ctx context.Context, source *rules.Source, change func(*rules.Set) error) error {
	changes, err := source.Edit(ctx, c.dryRun, change)
	if err != nil {
		return err
	}
	if c.format == "json" {
		return writeJSON(c.std.Out, newEdit(changes, c.dryRun))
	}
	noun := "rule"
	for _, ch := range changes {
		fmt.Fprintln(c.std.Out, changeText(ch))
		if ch.Policy != nil {
			noun = "row"
		}
	}
	switch n := prose.Count(len(changes), noun); {
	case len(changes) == 0:
		fmt.Fprintln(c.std.Out, "nothing changes")
	case c.dryRun:
		fmt.Fprintf(c.std.Out, "%s would change; nothing is written\n", n)
	default:
		fmt.Fprintf(c.std.Out, "%s changed\n", n)
	}
	return nil
}

type edit struct {
	Written bool     `json:"written"`
	Changes []change `json:"changes"`
}

// A change is a row before and after the edit. Before is nil for a new row, and after is nil for a removed one.
type change struct {
	Policy *string     `json:"policy,omitempty"` // of the row of a policy, "" for all policies
	Before *listedRule `json:"before"`
	After  *listedRule `json:"after"`
}

func newEdit(changes []rules.Change, dryRun bool) edit {
	e := edit{Written: !dryRun && len(changes) > 0, Changes: []change{}}
	for _, c := range changes {
		row := change{Policy: c.Policy}
		if c.Before != nil {
			before := newListedRule(c.Before)
			row.Before = &before
		}
		if c.After != nil {
			after := newListedRule(c.After)
			row.After = &after
		}
		e.Changes = append(e.Changes, row)
	}
	return e
}

func changeText(c rules.Change) string {
	var name string
	switch {
	case c.Policy != nil && *c.Policy == "":
		name = "all policies"
	case c.Policy != nil:
		name = "policy " + *c.Policy
	case c.After == nil:
		name = c.Before.Name
	default:
		name = c.After.Name
	}
	before, after := flattenRow(c.Before), flattenRow(c.After)
	switch {
	case c.After == nil:
		return "- " + name
	case c.Before == nil:
		var words []string
		for _, path := range slices.Sorted(maps.Keys(after)) {
			words = append(words, path+" "+after[path])
		}
		return "+ " + name + ": " + strings.Join(words, ", ")
	}
	var words []string
	paths := slices.Concat(slices.Collect(maps.Keys(before)), slices.Collect(maps.Keys(after)))
	slices.Sort(paths)
	for _, path := range slices.Compact(paths) {
		if before[path] != after[path] {
			words = append(words, fmt.Sprintf("%s %s (was %s)", path, cmp.Or(after[path], "NULL"), cmp.Or(before[path], "NULL")))
		}
	}
	return "~ " + name + ": " + strings.Join(words, ", ")
}

// flattenRow returns the values of a row by their paths in spec, and by column name for values outside of spec.
func flattenRow(r *rules.Rule) map[string]string {
	found := map[string]string{}
	if r == nil {
		return found
	}
	var walk func(path string, v any)
	walk = func(path string, v any) {
		switch v := v.(type) {
		case map[string]any:
			for name, inside := range v {
				walk(path+"/"+name, inside)
			}
		case []any:
			text, _ := json.Marshal(v) // the value came from JSON
			found[visible.Text(path[1:])] = visible.Text(string(text))
		default:
			found[visible.Text(path[1:])] = visible.Text(fmt.Sprint(v))
		}
	}
	dec := json.NewDecoder(bytes.NewReader(r.Spec))
	dec.UseNumber()
	var spec map[string]any
	_ = dec.Decode(&spec) // the database only stores valid JSON
	walk("", spec)
	if r.ID != 0 {
		found["key_pattern"], found["scope"], found["policy"] = visible.Text(r.KeyPattern), r.Scope, visible.Text(r.Policy)
		found["is_active"], found["priority"], found["is_fallback"] = fmt.Sprint(r.Active), fmt.Sprint(r.Priority), fmt.Sprint(r.Fallback)
	}
	return found
}

// importFile stores the rules of a policy file as rows.
func (c *rulesCommand) importFile(ctx context.Context, source *rules.Source) error {
	name := c.operands[0]
	name, data, err := readPolicyFile(c.std, name)
	if err != nil {
		return err
	}
	asJSON, err := policyyaml.ToJSON(name, data, policy.Options{})
	if err != nil {
		return err
	}
	err = c.edit(ctx, source, func(set *rules.Set) error { return set.Import(asJSON, c.replace) })
	if left := rules.DroppedFields(asJSON); err == nil && len(left) > 0 {
		fmt.Fprintf(c.std.Err, "mete rules: ignored, because rows have a revision instead: %s\n", strings.Join(left, ", "))
	}
	return err
}

func (c *rulesCommand) export(ctx context.Context, source *rules.Source) error {
	set, err := source.Read(ctx)
	if err != nil {
		return err
	}
	m, err := set.Compile(policy.Options{})
	if err != nil {
		return err
	}
	active := slices.DeleteFunc(slices.Clone(m.Rules()), (*policy.Rule).IsGuard)
	if left := len(set.Rules) - len(active); left > 0 {
		fmt.Fprintf(c.std.Err, "mete rules: %s omitted: not active\n", prose.Count(left, "rule is", "rules are"))
	}
	if c.format == "json" {
		_, err = fmt.Fprintf(c.std.Out, "%s\n", set.Export())
		return err
	}
	return policyyaml.WriteYAML(c.std.Out, set.Export())
}
