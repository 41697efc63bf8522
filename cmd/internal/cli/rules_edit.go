// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/metehq/mete/cmd/internal/prose"
	"github.com/metehq/mete/internal/visible"
	"github.com/metehq/mete/pgstore/rules"
	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/policyyaml"
)

// edit writes a change, and says what it came to.
func (c *rulesCommand) edit(ctx context.Context, source *rules.Source, change func(*rules.Set) error) error {
	changes, err := source.Edit(ctx, c.dryRun, change)
	if err != nil {
		return err
	}
	for _, ch := range changes {
		fmt.Fprintln(c.std.Out, changeText(ch))
	}
	switch n := prose.Count(len(changes), "rule"); {
	case len(changes) == 0:
		fmt.Fprintln(c.std.Out, "nothing changes")
	case c.dryRun:
		fmt.Fprintf(c.std.Out, "%s would change; nothing is written\n", n)
	default:
		fmt.Fprintf(c.std.Out, "%s changed\n", n)
	}
	return nil
}

// changeText says what became of one rule, in one line.
func changeText(c rules.Change) string {
	switch {
	case c.Before == nil:
		return "+ " + c.After.Name + ": " + strings.Join(columns(c.After), ", ")
	case c.After == nil:
		return "- " + c.Before.Name
	}
	var words []string
	before, after := columns(c.Before), columns(c.After)
	for i := range after {
		if before[i] != after[i] {
			_, was, _ := strings.Cut(before[i], " ")
			words = append(words, fmt.Sprintf("%s (was %s)", after[i], was))
		}
	}
	return "~ " + c.After.Name + ": " + strings.Join(words, ", ")
}

// columns are the columns of a row that can be edited, each with its name.
func columns(r *rules.Rule) []string {
	or := func(s string) string {
		if s == "" {
			return "NULL"
		}
		return visible.Text(s)
	}
	return []string{
		"name " + r.Name, "key_pattern " + visible.Text(r.KeyPattern), "scope " + visible.Text(r.Scope), "rate_per_second " + or(r.RatePerSecond),
		"burst_capacity " + or(r.BurstCapacity), "plan " + or(r.Plan), fmt.Sprintf("is_active %t", r.Active),
		"description " + or(r.Description), fmt.Sprintf("priority %d", r.Priority), "spec " + visible.Text(string(r.Spec)),
	}
}

// importFile makes the rules of a policy file rows.
func (c *rulesCommand) importFile(ctx context.Context, source *rules.Source) error {
	name := c.operands[0]
	var data []byte
	var err error
	if name == "-" {
		name = stdinName
		data, err = policyyaml.ReadFrom(c.std.In, "standard input")
	} else {
		data, err = policyyaml.Read(name)
	}
	if err != nil {
		return err
	}
	asJSON, err := policyyaml.ToJSON(name, data, policy.Options{})
	if err != nil {
		return err
	}
	err = c.edit(ctx, source, func(set *rules.Set) error { return set.Import(asJSON, c.replace) })
	if mistakes, ok := errors.AsType[policy.Errors](err); ok {
		return placed(name, data, mistakes)
	}
	if left := rules.LeftOut(asJSON); err == nil && len(left) > 0 {
		fmt.Fprintf(c.std.Err, "mete rules: left out, as rows have no place for it: %s\n", strings.Join(left, ", "))
	}
	return err
}

// placed says where in a file mistakes are.
func placed(name string, data []byte, mistakes policy.Errors) policyyaml.Errors {
	paths := make([]string, len(mistakes))
	for i, e := range mistakes {
		paths[i] = e.Path
	}
	places := policyyaml.Places(name, data, paths)
	all := make(policyyaml.Errors, len(mistakes))
	for i, e := range mistakes {
		at := places[e.Path]
		all[i] = policyyaml.Mistake{File: name, Line: at.Line, Column: at.Column, Error: e}
	}
	return all
}

// export writes the active rules as a policy file.
func (c *rulesCommand) export(ctx context.Context, source *rules.Source) error {
	set, err := source.Read(ctx)
	if err != nil {
		return err
	}
	m, err := set.Compile(policy.Options{})
	if err != nil {
		return err
	}
	if left := len(set.Rules) - len(m.Rules()); left > 0 {
		fmt.Fprintf(c.std.Err, "mete rules: %s left out: not active\n", prose.Count(left, "rule is", "rules are"))
	}
	if c.format == "json" {
		_, err = fmt.Fprintf(c.std.Out, "%s\n", set.Export())
		return err
	}
	return policyyaml.WriteYAML(c.std.Out, set.Export())
}
