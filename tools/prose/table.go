// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

var kinds = [...]string{"docs", "help", "comments", "tests", "strings", "pages", "files"}

const (
	inDocs = iota
	inHelp
	inComments
	inTests
	inStrings
	inPages
	inFiles
)

// A table has a number of hits per rule and kind of text.
type table map[string]*[len(kinds)]int

// count returns the hits per rule and kind, with a line for each rule.
func count(rules []string, hits []hit) table {
	t := table{}
	for _, r := range rules {
		t[r] = new([len(kinds)]int)
	}
	for _, h := range hits {
		t[h.rule][h.kind]++
	}
	return t
}

// parseTable reads the format of String. A rule without a line has zeros.
func parseTable(text string, rules []string) (table, error) {
	t := count(rules, nil)
	for i, line := range strings.Split(text, "\n") {
		fields := strings.Fields(line)
		if len(fields) == 0 || fields[0] == "#" {
			continue
		}
		row := t[fields[0]]
		if row == nil {
			return nil, fmt.Errorf("line %d: no rule is named %q: resolve the conflict or remove the line", i+1, fields[0])
		}
		if len(fields) != 1+len(kinds) {
			return nil, fmt.Errorf("line %d: %d numbers, want %d: %s", i+1, len(fields)-1, len(kinds), strings.Join(kinds[:], ", "))
		}
		for k, f := range fields[1:] {
			n, err := strconv.Atoi(f)
			if err != nil || n < 0 {
				return nil, fmt.Errorf("line %d: %q: want a number of 0 or more", i+1, f)
			}
			row[k] = n
		}
	}
	return t, nil
}

func (t table) rules() []string { return slices.Sorted(maps.Keys(t)) }

// lower returns the smaller number of t and counts in each place.
func (t table) lower(counts table) table {
	low := table{}
	for rule, row := range t {
		low[rule] = new([len(kinds)]int)
		for k, n := range row {
			low[rule][k] = min(n, counts[rule][k])
		}
	}
	return low
}

func (t table) String() string {
	var b strings.Builder
	b.WriteString("# The most hits of each Vale rule. To lower them: go run ./tools/prose -lower\n")
	row := func(name string, cell func(kind int) any) {
		fmt.Fprintf(&b, "%-16s", name)
		for k := range kinds {
			fmt.Fprintf(&b, "%9v", cell(k))
		}
		b.WriteByte('\n')
	}
	row("#", func(k int) any { return kinds[k] })
	for _, r := range t.rules() {
		row(r, func(k int) any { return t[r][k] })
	}
	return b.String()
}
