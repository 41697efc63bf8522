// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/metehq/mete/cmd/internal/table"
	"github.com/metehq/mete/internal/visible"
	"github.com/metehq/mete/pgstore/rules"
	"github.com/metehq/mete/policy"
)

// A listedRule is the JSON form of a row. It is a stable contract, and its fields are named after the columns.
type listedRule struct {
	ID            int64           `json:"rule_id"`
	Name          string          `json:"name"`
	KeyPattern    string          `json:"key_pattern"`
	Scope         string          `json:"scope"`
	RatePerSecond *json.Number    `json:"rate_per_second"`
	BurstCapacity *json.Number    `json:"burst_capacity"`
	Plan          *string         `json:"plan"`
	Active        bool            `json:"is_active"`
	Description   *string         `json:"description"`
	Priority      int32           `json:"priority"`
	Policy        string          `json:"policy"`
	Fallback      bool            `json:"is_fallback"`
	Spec          json.RawMessage `json:"spec"`
	WindowTokens  *json.Number    `json:"window_tokens"`
	WindowLength  *string         `json:"window_length"`
	Version       int64           `json:"version"`
	CreatedAt     time.Time       `json:"created_at"`
	UpdatedAt     time.Time       `json:"updated_at"`
}

// list prints the rules and their errors.
func (c *rulesCommand) list(ctx context.Context, source *rules.Source) error {
	set, err := source.Read(ctx)
	if err != nil {
		return err
	}
	shown := set.Rules
	if len(c.operands) > 0 {
		if shown, err = selectRules(set.Rules, c.operands); err != nil {
			return err
		}
	}
	if c.format == "json" {
		list := []listedRule{}
		for i := range shown {
			list = append(list, newListedRule(&shown[i]))
		}
		enc := json.NewEncoder(c.std.Out)
		enc.SetEscapeHTML(false)
		enc.SetIndent("", "  ")
		if err := enc.Encode(list); err != nil {
			return err
		}
	} else if err := c.printTable(shown, source.Schema()); err != nil {
		return err
	}
	if len(set.Rules) == 0 {
		return nil
	}
	_, err = set.Compile(policy.Options{})
	return err
}

func (c *rulesCommand) printTable(shown []rules.Rule, schema string) error {
	if len(shown) == 0 {
		_, err := fmt.Fprintf(c.std.Out, "there are no rules in the schema %s\n", schema)
		return err
	}
	t := table.New(">ID", "NAME", "PATTERN", "PLAN", ">RATE", ">BURST", ">TOKENS", "WINDOW", "MODE", "POLICY", "ACTIVE", ">PRIORITY", ">VERSION", "UPDATED")
	for i := range shown {
		r := &shown[i]
		active, of := "yes", r.Policy
		if !r.Active {
			active = "no"
		}
		if r.Fallback {
			of += ", fallback"
		}
		var spec struct{ Mode string }
		_ = json.Unmarshal(r.Spec, &spec) // Compile reports a mode of another type
		t.Add(strconv.FormatInt(r.ID, 10), r.Name, visible.Text(r.KeyPattern), visible.Text(r.Plan), r.RatePerSecond, r.BurstCapacity, r.WindowTokens, visible.Text(r.WindowLength),
			visible.Text(spec.Mode), visible.Text(of), active, strconv.Itoa(int(r.Priority)), strconv.FormatInt(r.Version, 10), r.UpdatedAt.UTC().Format("2006-01-02 15:04:05"))
	}
	_, err := t.WriteTo(c.std.Out)
	return err
}

// selectRules returns the rules with the given names.
func selectRules(list []rules.Rule, names []string) (found []rules.Rule, err error) {
	for _, name := range names {
		i := slices.IndexFunc(list, func(r rules.Rule) bool { return r.Name == name })
		if i < 0 {
			return nil, unmetError(fmt.Sprintf("there is no rule %q", name))
		}
		found = append(found, list[i])
	}
	return found, nil
}

func newListedRule(r *rules.Rule) listedRule {
	l := listedRule{ID: r.ID, Name: r.Name, KeyPattern: r.KeyPattern, Scope: r.Scope, Active: r.Active, Priority: r.Priority,
		Policy: r.Policy, Fallback: r.Fallback, Spec: r.Spec, Version: r.Version, CreatedAt: r.CreatedAt.UTC(), UpdatedAt: r.UpdatedAt.UTC()}
	for _, text := range []struct {
		to   **string
		from string
	}{{&l.Plan, r.Plan}, {&l.Description, r.Description}, {&l.WindowLength, r.WindowLength}} {
		if text.from != "" {
			*text.to = &text.from
		}
	}
	for _, number := range []struct {
		to   **json.Number
		from string
	}{{&l.RatePerSecond, r.RatePerSecond}, {&l.BurstCapacity, r.BurstCapacity}, {&l.WindowTokens, r.WindowTokens}} {
		if number.from != "" {
			*number.to = (*json.Number)(&number.from)
		}
	}
	return l
}
