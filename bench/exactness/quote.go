// SPDX-License-Identifier: Apache-2.0

package exactness

import (
	"fmt"
	"strconv"
	"strings"
)

// quoteHeading starts the table in the README, which has a bound on its lines and so no lines around the table.
const quoteHeading = "| Tokens above the bound / lost (errors) |"

// quoted are the titles of the contenders in the README.
var quoted = []string{"mete, Redis", "redis_rate, Redis", "envoyproxy/ratelimit, Redis"}

// Quote returns the README with three contenders of the results.
func Quote(readme string, r Results) (string, error) {
	before, rest, found := strings.Cut(readme, "\n"+quoteHeading)
	_, after, found2 := strings.Cut(rest, "\n\n") // the end of the old table
	if !found || !found2 {
		return "", fmt.Errorf("exactness: the README lacks a table that starts with %q", quoteHeading)
	}
	return before + "\n" + r.quote() + "\n" + after, nil
}

func (r Results) quote() string {
	var b strings.Builder
	b.WriteString(quoteHeading)
	for _, condition := range Conditions {
		fmt.Fprintf(&b, " %s |", condition.Name)
	}
	b.WriteString("\n|---|" + strings.Repeat("---:|", len(Conditions)) + "\n")
	for _, title := range quoted {
		fmt.Fprintf(&b, "| %s |", title)
		for _, condition := range Conditions {
			cell := r.Cells[title][condition.Name]
			if cell.Reason != "" {
				b.WriteString(" – |")
				continue
			}
			fmt.Fprintf(&b, " %d / %s |", cell.Above, lostText(cell, strconv.Itoa(cell.Lost)))
		}
		b.WriteString("\n")
	}
	return b.String()
}
