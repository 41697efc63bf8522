// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/metehq/mete/cmd/internal/table"
	"github.com/metehq/mete/internal/prose"
	"github.com/metehq/mete/internal/visible"
	"github.com/metehq/mete/pgstore/violations"
)

type summaryDocument struct {
	Since     *time.Time  `json:"since"`
	Until     *time.Time  `json:"until"`
	Denials   int64       `json:"denials"`
	Shadow    int64       `json:"shadow_denials"`
	Rows      int64       `json:"rows"`
	Rules     []groupLine `json:"rules"`
	Keys      []groupLine `json:"keys"`
	Users     []groupLine `json:"users"`
	Addresses []groupLine `json:"addresses"`
	Endpoints []groupLine `json:"endpoints"`
	Hours     []groupLine `json:"hours"`
}

type groupLine struct {
	Name    string    `json:"name"`
	Denials int64     `json:"denials"`
	Shadow  int64     `json:"shadow_denials"`
	LastAt  time.Time `json:"last_at"`
}

func (c *violationsCommand) printSummary(s violations.Summary) error {
	if c.format == "json" {
		return writeJSON(c.std.Out, summaryDocument{
			Since: timeOrNil(c.query.Since), Until: timeOrNil(c.query.Until), Denials: s.Denials, Shadow: s.Shadow, Rows: s.Rows,
			Rules: groupLines(s.Rules), Keys: groupLines(s.Keys), Users: groupLines(s.Users), Addresses: groupLines(s.Networks),
			Endpoints: groupLines(s.Endpoints), Hours: groupLines(s.Hours),
		})
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s", prose.Count(s.Denials, "denial"))
	if s.Shadow > 0 {
		fmt.Fprintf(&b, ", and %d that rules in shadow would have denied", s.Shadow)
	}
	fmt.Fprintf(&b, ", in %s\n", prose.Count(s.Rows, "row"))
	for _, part := range []struct {
		name   string
		groups []violations.Group
	}{
		{"rule", s.Rules}, {"key", s.Keys}, {"user", s.Users}, {"address", s.Networks}, {"endpoint", s.Endpoints}, {"hour (UTC)", s.Hours},
	} {
		if len(part.groups) == 0 {
			continue
		}
		b.WriteString("\n")
		if _, err := groupTable(part.name, part.groups, s.Shadow > 0).WriteTo(&b); err != nil {
			return err
		}
	}
	_, err := c.std.Out.Write([]byte(b.String()))
	return err
}

// groupTable returns a table of groups, with a column for shadow denials if there are any.
func groupTable(name string, groups []violations.Group, shadow bool) *table.Table {
	headings := []string{">denials", name, "last"}
	if shadow {
		headings = []string{">denials", ">in shadow", name, "last"}
	}
	t := table.New(headings...)
	for _, g := range groups {
		label := g.Name
		if label == violations.Others && name == "key" {
			label = "(other keys, not tracked)"
		}
		cells := []string{strconv.FormatInt(g.Denials, 10)}
		if shadow {
			cells = append(cells, strconv.FormatInt(g.Shadow, 10))
		}
		t.Add(append(cells, cellText(label), g.Last.UTC().Format(time.DateTime))...)
	}
	return t
}

func groupLines(groups []violations.Group) []groupLine {
	lines := make([]groupLine, len(groups))
	for i, g := range groups {
		lines[i] = groupLine{g.Name, g.Denials, g.Shadow, g.Last.UTC()}
	}
	return lines
}

func timeOrNil(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}

func (c *violationsCommand) printList(list []violations.Violation) error {
	if c.format == "json" {
		for i := range list {
			if err := writeJSON(c.std.Out, list[i].Row()); err != nil {
				return err
			}
		}
		return nil
	}
	if len(list) == 0 {
		_, err := fmt.Fprintln(c.std.Out, "no violations")
		return err
	}
	t := table.New("at", ">denials", "rule", "reason", "key", "user", "address", "endpoint", ">retry after")
	for i := range list {
		v := &list[i]
		retry := prose.Duration(v.RetryAfter)
		rule := v.Rule
		if v.Limit != v.Rule && v.Limit != "" {
			rule = v.Limit
		}
		if v.Shadow {
			rule += " (shadow)"
		}
		t.Add(v.At.UTC().Format("2006-01-02 15:04:05.000"), strconv.FormatInt(v.Denials, 10), cellText(rule), cellText(v.Reason),
			cellText(v.Key), cellText(v.User), cellText(v.Address()), cellText(v.Endpoint), retry)
	}
	_, err := t.WriteTo(c.std.Out)
	return err
}

// cellText makes text from the database safe to print: it escapes control characters for the terminal.
func cellText(s string) string {
	if s == "" {
		return "-"
	}
	return visible.Text(s)
}
