// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/metehq/mete/api"
	"github.com/metehq/mete/cmd/internal/display"
	"github.com/metehq/mete/cmd/internal/table"
)

// minKeyColumns is how much of a key is to be seen before columns give way to it, and
// barKeyColumns before bars do.
const (
	minKeyColumns = 20
	barKeyColumns = 36
)

// Widths of the bars beside shares, on a wide terminal and on any other.
const (
	wideColumns = 110
	wideBar     = 10
	narrowBar   = 5
)

// givesWay are the headings of the columns that narrow terminals go without, the first
// one first, after the bars.
var givesWay = []string{">FIRST", ">LAST", ">SHARE", ">RETRY", ">/S"}

// A topColumn is one column of the table of keys.
type topColumn struct {
	heading string
	cell    func(*api.TopKey) string
}

// topTable are so many keys from one on, under a heading. Where width is above 0, there
// are bars, and columns are left out for the key's sake; lines can be longer all the same.
func topTable(top *api.Top, from, n, width int) []string {
	if width > 0 {
		bar := narrowBar
		if width >= wideColumns {
			bar = wideBar
		}
		if lines := topLines(top, topColumns(top, bar), from, n); showsKeys(lines, width, barKeyColumns) {
			return lines
		}
	}
	columns := topColumns(top, 0)
	lines := topLines(top, columns, from, n)
	for _, heading := range givesWay {
		if width == 0 || showsKeys(lines, width, minKeyColumns) {
			break
		}
		columns = slices.DeleteFunc(columns, func(c topColumn) bool { return c.heading == heading })
		lines = topLines(top, columns, from, n)
	}
	return lines
}

// showsKeys reports whether enough of the keys, which stand last, is within width.
func showsKeys(lines []string, width, enough int) bool {
	if width-strings.LastIndex(lines[0], "KEY") >= enough {
		return true
	}
	return !slices.ContainsFunc(lines, func(line string) bool { return display.Width(line) > width })
}

// topColumns are all columns of the table, with bars as wide as that.
func topColumns(top *api.Top, bar int) []topColumn {
	totals := map[string]uint64{}
	for _, r := range top.Rules {
		totals[r.Rule] = r.Total
	}
	share := topColumn{">SHARE", func(k *api.TopKey) string { return shareText(k, totals[k.Rule]) }}
	if bar > 0 {
		share = topColumn{"SHARE", func(k *api.TopKey) string {
			part := float64(min(k.Count, totals[k.Rule])) / float64(max(totals[k.Rule], 1))
			return fmt.Sprintf("%s %4s", shareBar(part, bar), shareText(k, totals[k.Rule]))
		}}
	}
	columns := []topColumn{
		{topWords[top.Kind].heading, countText},
		{">/S", func(k *api.TopKey) string { return perSecond(k.Count, top.At.Sub(top.Since)) }},
		share,
		{">FIRST", func(k *api.TopKey) string { return sinceText(top.At, k.First) }},
		{">LAST", func(k *api.TopKey) string { return sinceText(top.At, k.Last) }},
	}
	if top.Kind != "near" {
		columns = append(columns, topColumn{">RETRY", func(k *api.TopKey) string { return waitText(k.RetryAfter.Duration()) }})
	}
	return append(columns,
		topColumn{"RULE", func(k *api.TopKey) string { return display.Cut(display.Inert(k.Limit), maxRuleColumns) }},
		topColumn{"KEY", func(k *api.TopKey) string { return keyText(k, top.Masked) }})
}

// topLines are the columns of so many keys from one on, laid out.
func topLines(top *api.Top, columns []topColumn, from, n int) []string {
	var headings []string
	for _, c := range columns {
		headings = append(headings, c.heading)
	}
	t := table.New(headings...)
	for i := range top.Keys[from:min(from+n, len(top.Keys))] {
		var cells []string
		for _, c := range columns {
			cells = append(cells, c.cell(&top.Keys[from+i]))
		}
		t.Add(cells...)
	}
	var b strings.Builder
	_, _ = t.WriteTo(&b) // never fails
	return strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")
}
