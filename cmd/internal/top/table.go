// SPDX-License-Identifier: Apache-2.0

package top

import (
	"fmt"
	"slices"
	"strings"

	"github.com/metehq/mete/api"
	"github.com/metehq/mete/cmd/internal/display"
	"github.com/metehq/mete/cmd/internal/table"
)

// Narrow terminals drop bars until keys have barKeyColumns, and columns until keys have minKeyColumns.
const (
	minKeyColumns = 20
	barKeyColumns = 36
)

// dropped lists the columns that narrow terminals drop, in this order.
var dropped = []string{">FIRST", ">LAST", ">SHARE", ">RETRY", ">/S"}

type column struct {
	heading string
	cell    func(*api.TopKey) string
}

func listText(top *api.Top, limit int) string {
	text := totalText(top) + "\n"
	if len(top.Keys) > 0 {
		text += "\n" + strings.Join(layOut(top, columns(top, 0), 0, limit), "\n") + "\n"
	}
	return text + "\n" + restText(top, limit, limit) + "\n"
}

// fitTable lays out n keys below the headings so that enough of each key fits into width.
func fitTable(top *api.Top, from, n, width int) []string {
	bar := 5
	if width >= 110 {
		bar = 10
	}
	if lines := layOut(top, columns(top, bar), from, n); showsKeys(lines, width, barKeyColumns) {
		return lines
	}
	left := columns(top, 0)
	lines := layOut(top, left, from, n)
	for _, heading := range dropped {
		if showsKeys(lines, width, minKeyColumns) {
			break
		}
		left = slices.DeleteFunc(left, func(c column) bool { return c.heading == heading })
		lines = layOut(top, left, from, n)
	}
	return lines
}

// showsKeys reports whether enough of the last column, the keys, fits into width.
func showsKeys(lines []string, width, enough int) bool {
	return width-strings.LastIndex(lines[0], "KEY") >= enough ||
		!slices.ContainsFunc(lines, func(line string) bool { return display.Width(line) > width })
}

// columns returns all columns of the table. bar is the width of a bar, or 0 for none.
func columns(top *api.Top, bar int) []column {
	totals := map[string]uint64{}
	for _, r := range top.Rules {
		totals[r.Rule] = r.Total
	}
	share := column{">SHARE", func(k *api.TopKey) string { return shareText(k, totals[k.Rule]) }}
	if bar > 0 {
		share = column{"SHARE", func(k *api.TopKey) string {
			part := float64(min(k.Count, totals[k.Rule])) / float64(max(totals[k.Rule], 1))
			return fmt.Sprintf("%s %4s", shareBar(part, bar), shareText(k, totals[k.Rule]))
		}}
	}
	all := []column{
		{kindWords[top.Kind].heading, countText},
		{">/S", func(k *api.TopKey) string { return perSecond(k.Count, top.At.Sub(top.Since)) }},
		share,
		{">FIRST", func(k *api.TopKey) string { return sinceText(top.At, k.First) }},
		{">LAST", func(k *api.TopKey) string { return sinceText(top.At, k.Last) }},
	}
	if top.Kind != "near" {
		all = append(all, column{">RETRY", func(k *api.TopKey) string { return waitText(k.RetryAfter.Duration()) }})
	}
	return append(all,
		column{"RULE", func(k *api.TopKey) string { return display.Cut(display.EscapeUnsafe(k.Limit), maxRuleColumns) }},
		column{"KEY", func(k *api.TopKey) string { return keyText(k, top.Masked) }})
}

func layOut(top *api.Top, columns []column, from, n int) []string {
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
	_, _ = t.WriteTo(&b) // a strings.Builder never fails
	return strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")
}
