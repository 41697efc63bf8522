// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/metehq/mete/cmd/internal/table"
	"github.com/metehq/mete/internal/prose"
	"github.com/metehq/mete/pgstore/violations"
)

// A summaryDocument is a summary as JSON.
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
			Since: knownTime(c.query.Since), Until: knownTime(c.query.Until), Denials: s.Denials, Shadow: s.Shadow, Rows: s.Rows,
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

// groupTable shows groups, and what is in shadow where anything is.
func groupTable(name string, groups []violations.Group, shadow bool) *table.Table {
	headings := []string{">denials", name, "last"}
	if shadow {
		headings = []string{">denials", ">in shadow", name, "last"}
	}
	t := table.New(headings...)
	for _, g := range groups {
		label := g.Name
		if label == violations.Others && name == "key" {
			label = "(others, for which there was no room)"
		}
		cells := []string{strconv.FormatInt(g.Denials, 10)}
		if shadow {
			cells = append(cells, strconv.FormatInt(g.Shadow, 10))
		}
		t.Add(append(cells, cell(label), g.Last.UTC().Format(time.DateTime))...)
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

func knownTime(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}
