// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"slices"
	"strings"

	"github.com/metehq/mete/cmd/internal/display"
	"github.com/metehq/mete/cmd/internal/table"
	"github.com/metehq/mete/httpapi"
)

// minKeyColumns is how much of a key is to be seen before columns give way to it.
const minKeyColumns = 20

// givesWay are the headings of the columns that narrow terminals go without, the first
// one first.
var givesWay = []string{">FIRST", ">LAST", ">SHARE", ">RETRY", ">/S"}

// A topColumn is one column of the table of keys.
type topColumn struct {
	heading string
	cell    func(*httpapi.TopKey) string
}

// topTable are the first n keys, under a heading. Where width is above 0, columns are
// left out for the key's sake; lines can be longer all the same.
func topTable(top *httpapi.TopKeys, n, width int) []string {
	columns := topColumns(top)
	lines := topLines(top, columns, n)
	for _, heading := range givesWay {
		if width == 0 || showsKeys(lines, width) {
			break
		}
		columns = slices.DeleteFunc(columns, func(c topColumn) bool { return c.heading == heading })
		lines = topLines(top, columns, n)
	}
	return lines
}

// showsKeys reports whether enough of the keys, which stand last, is within width.
func showsKeys(lines []string, width int) bool {
	if width-strings.LastIndex(lines[0], "KEY") >= minKeyColumns {
		return true
	}
	return !slices.ContainsFunc(lines, func(line string) bool { return display.Width(line) > width })
}

// topColumns are all columns of the table.
func topColumns(top *httpapi.TopKeys) []topColumn {
	totals := map[string]uint64{}
	for _, r := range top.Rules {
		totals[r.Rule] = r.Total
	}
	columns := []topColumn{
		{topWords[top.Kind].heading, countText},
		{">/S", func(k *httpapi.TopKey) string { return perSecond(k.Count, top.At.Sub(top.Since)) }},
		{">SHARE", func(k *httpapi.TopKey) string { return shareText(k, totals[k.Rule]) }},
		{">FIRST", func(k *httpapi.TopKey) string { return sinceText(top.At, k.First) }},
		{">LAST", func(k *httpapi.TopKey) string { return sinceText(top.At, k.Last) }},
	}
	if top.Kind != "near" {
		columns = append(columns, topColumn{">RETRY", func(k *httpapi.TopKey) string { return waitText(k.RetryAfter.Duration()) }})
	}
	return append(columns,
		topColumn{"RULE", func(k *httpapi.TopKey) string { return display.Cut(display.Inert(k.Limit), maxRuleColumns) }},
		topColumn{"KEY", func(k *httpapi.TopKey) string { return keyText(k, top.Masked) }})
}

// topLines are the columns of the first n keys, laid out.
func topLines(top *httpapi.TopKeys, columns []topColumn, n int) []string {
	var headings []string
	for _, c := range columns {
		headings = append(headings, c.heading)
	}
	t := table.New(headings...)
	for i := range top.Keys[:min(n, len(top.Keys))] {
		var cells []string
		for _, c := range columns {
			cells = append(cells, c.cell(&top.Keys[i]))
		}
		t.Add(cells...)
	}
	var b strings.Builder
	_, _ = t.WriteTo(&b) // never fails
	return strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")
}
