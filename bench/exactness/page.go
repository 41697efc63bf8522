// SPDX-License-Identifier: Apache-2.0

package exactness

import (
	"fmt"
	"slices"
	"strings"
)

// The lines of the page between which the tables stand.
const (
	beginTables = "<!-- make compare-exactness writes the following lines -->"
	endTables   = "<!-- end of make compare-exactness -->"
)

// Insert returns the page with the tables of the results.
func Insert(page string, r Results) (string, error) {
	before, rest, found := strings.Cut(page, beginTables)
	_, after, found2 := strings.Cut(rest, endTables)
	if !found || !found2 {
		return "", fmt.Errorf("exactness: the page lacks the lines %q and %q", beginTables, endTables)
	}
	return before + beginTables + "\n\n" + r.tables() + "\n" + endTables + after, nil
}

// A figure is one of the three measurements.
type figure struct {
	heading, means string
	text           func(Cell) string
}

var figures = []figure{
	{"Tokens above the bound", "Tokens admitted above the contender's own bound, in the worst window.", func(c Cell) string {
		return bold(c.Above, fmt.Sprint(c.Above))
	}},
	{"Tokens lost", "Denied takes that the contender's own promise admits. In parentheses: calls that failed with an error. Such a call counts neither as admitted nor as lost.", func(c Cell) string {
		return lostText(c, bold(c.Lost, fmt.Sprint(c.Lost)))
	}},
	{"Retry-After that failed", "A client that is alone on its key waits exactly as long as it was told. The cell has the denied retries out of all. " +
		"Empty: the contender returned no wait, or one above 3 s.", func(c Cell) string {
		if c.Asked == 0 {
			return ""
		}
		return bold(c.Failed, fmt.Sprintf("%d of %d", c.Failed, c.Asked))
	}},
}

// lostText adds the errors, because a call that failed is neither admitted nor lost.
func lostText(c Cell, lost string) string {
	if c.Errors == 0 {
		return lost
	}
	return fmt.Sprintf("%s (%d)", lost, c.Errors)
}

func bold(n int, text string) string {
	if n > 0 {
		return "**" + text + "**"
	}
	return text
}

func (r Results) tables() string {
	var b strings.Builder
	fmt.Fprintf(&b, "Seed %d, %s, %s; %s.\n", r.Seed, r.Day, r.Took, r.Using)
	b.WriteString("\n| condition | what happens |\n|---|---|\n")
	for _, condition := range Conditions {
		fmt.Fprintf(&b, "| %s | %s |\n", condition.Name, condition.Means)
	}
	reasons := &notes{}
	for _, f := range figures {
		fmt.Fprintf(&b, "\n### %s\n\n%s\n\n| |", f.heading, f.means)
		for _, condition := range Conditions {
			fmt.Fprintf(&b, " %s |", condition.Name)
		}
		b.WriteString("\n|---|" + strings.Repeat("---:|", len(Conditions)) + "\n")
		for _, c := range Contenders {
			fmt.Fprintf(&b, "| %s |", c.Title())
			for _, condition := range Conditions {
				cell := r.Cells[c.Title()][condition.Name]
				text := "– " + reasons.mark(cell.Reason)
				if cell.Reason == "" {
					text = f.text(cell)
				}
				fmt.Fprintf(&b, " %s |", text)
			}
			b.WriteString("\n")
		}
	}
	b.WriteString("\n" + reasons.list())
	b.WriteString("\n### Versions and promises\n\n| contender | version | bound, as documented | used as in |\n|---|---|---|---|\n")
	for _, c := range Contenders {
		fmt.Fprintf(&b, "| %s | %s | [%s](%s) | %s |\n", c.Title(), r.Version(c), strings.ReplaceAll(c.Says, "|", "\\|"), c.Link, c.Uses)
	}
	return b.String()
}

// notes numbers the reasons for missing figures.
type notes struct{ reasons []string }

func (n *notes) mark(reason string) string {
	if reason == "" {
		return ""
	}
	i := slices.Index(n.reasons, reason)
	if i < 0 {
		i = len(n.reasons)
		n.reasons = append(n.reasons, reason)
	}
	return fmt.Sprintf("<sup>%d</sup>", i+1)
}

func (n *notes) list() string {
	var b strings.Builder
	b.WriteString("Why there is no figure:\n\n")
	for i, reason := range n.reasons {
		fmt.Fprintf(&b, "%d. %s\n", i+1, reason)
	}
	return b.String()
}
