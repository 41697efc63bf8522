// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"cmp"
	"strings"

	"github.com/metehq/mete/internal/prose"
)

var colorOfChange = map[Change]string{ChangeNewlyLimited: "denied", ChangeNewlyAdmitted: "allowed"}

func (c *Comparison) document(r *Report, page bool) *document {
	d := c.newDocument(r, page, fact{"Old", r.Old + ", " + prose.Count(len(c.policies[0]), "rule")}, fact{"New", r.Policy + ", " + prose.Count(len(c.policies[1]), "rule")})
	d.Title, d.Kind, d.Headline = "From "+r.Old+" to "+r.Policy+", on "+r.Trace, "comparison of two policies", c.headline()
	limited, admitted := &c.keys[ChangeNewlyLimited], &c.keys[ChangeNewlyAdmitted]
	differs := c.changed[ChangeNewlyLimited].count+c.changed[ChangeNewlyAdmitted].count > 0
	if c.requests.count > 0 {
		order := []Change{ChangeNoneAllowed, ChangeNoneDenied, ChangeNewlyLimited, ChangeNewlyAdmitted}
		if page {
			order = []Change{ChangeNewlyLimited, ChangeNewlyAdmitted, ChangeNoneAllowed, ChangeNoneDenied}
		}
		for _, change := range order {
			color, note := "", ""
			if change.Differs() {
				color, note = colorOfChange[change], c.times(c.changed[change])
			}
			c.total(d, page, strings.ReplaceAll(change.String(), "_", " "), color, c.changed[change].count, note)
		}
		if differs {
			d.Bars = chart{&c.line, c.requests.last, []chartRow{
				{"requests", sum(c.over[:]...), 2, ""}, {"newly limited", c.over[ChangeNewlyLimited], 3, red}, {"newly admitted", c.over[ChangeNewlyAdmitted], 3, green},
			}}
		}
		c.addFigures(d)
		d.Tables = append(d.Tables, c.ruleSheet(page))
		names := keyNames{show: r.ShowKeys}
		c.addChangedKeys(d, r, page, &names, ChangeNewlyLimited)
		c.addChangedKeys(d, r, page, &names, ChangeNewlyAdmitted)
	}
	if page {
		edits := map[string]string{}
		for _, rule := range c.rules {
			edits[rule.name] = rule.edit
		}
		d.describePolicy(c.new, edits)
	}
	if c.requests.count > 0 && !differs {
		d.note("the two policies make the same decisions")
	}
	if c.shadowed[1] > 0 {
		d.note("rules in shadow would limit %s that the new policy allows (%d under the old)", prose.Count(c.shadowed[1], "request"), c.shadowed[0])
	}
	if c.delayed != [2]int64{} {
		d.note("%s by the old policy, %d by the new", prose.Count(c.delayed[0], "request is delayed", "requests are delayed"), c.delayed[1])
	}
	c.endNotes(d, r, int64(len(limited.tallies)+len(admitted.tallies)), max(limited.missed, admitted.missed))
	return d
}

func (c *Comparison) headline() string {
	limited, admitted := c.changed[ChangeNewlyLimited].count, c.changed[ChangeNewlyAdmitted].count
	switch {
	case c.requests.count == 0:
		return "The trace has no requests"
	case limited+admitted == 0:
		return "The two policies make the same decisions about " + requestCount(c.requests.count)
	case limited == 0:
		return requestCount(admitted) + " newly admitted, none newly limited"
	case admitted == 0:
		return requestCount(limited) + " newly limited, none newly admitted"
	}
	return requestCount(limited) + " newly limited, " + groupDigits(admitted) + " newly admitted"
}

func (c *Comparison) addFigures(d *document) {
	d.addFigure(figure{ID: "changes", Title: "Different decisions", Series: []figureSeries{
		{Label: "newly limited", Color: "denied", Kind: "bars", counts: c.over[ChangeNewlyLimited]},
		{Label: "newly admitted", Color: "allowed", Kind: "bars", counts: c.over[ChangeNewlyAdmitted]},
	}}, &c.line, c.requests.last)
	d.addFigure(figure{ID: "denials", Title: "Denied by each", Lines: true, Series: []figureSeries{
		{Label: "by the old policy", Color: "level", Kind: "line", Dash: []int{5, 4}, counts: sum(c.over[ChangeNoneDenied], c.over[ChangeNewlyAdmitted])},
		{Label: "by the new policy", Color: "denied", Kind: "line", counts: sum(c.over[ChangeNoneDenied], c.over[ChangeNewlyLimited])},
	}}, &c.line, c.requests.last)
}

func (c *Comparison) ruleSheet(page bool) *sheet {
	t := &sheet{ID: "rules", Title: "Rules", Columns: []column{
		{Kind: "mono", text: "RULE", Page: "Rule"}, {Kind: "num", group: "DENIED BY", text: "OLD", Page: "Denied by old"}, {Kind: "num", text: "NEW", Page: "Denied by new"},
		{Kind: "num", group: "NEWLY", text: "LIMITED", Page: "Newly limited"}, {Kind: "num", text: "ADMITTED", Page: "Newly admitted"},
		{Kind: "num", group: "IN SHADOW BY", text: "OLD", Page: "In shadow by old"}, {Kind: "num", text: "NEW", Page: "In shadow by new"},
		{Kind: "badge", text: "EDIT", Page: "Edit"}, {Kind: "spark", Page: "Denied over time"},
	}, Foot: "Denied over time: gray by the old policy, red by the new one. A request counts under the rule that decided: of the rules that deny, the one with the longest wait."}
	rules, left := mostOf(c.rules, page, func(a, b *ruleChange) int {
		return cmp.Or(cmp.Compare(a.weight(), b.weight()), cmp.Compare(a.denied[1], b.denied[1]))
	}, "change")
	t.About = left
	edited, shadow := false, false
	for _, r := range rules {
		row := []cell{textCell(r.name)}
		for i, n := range [...]int64{r.denied[0], r.denied[1], r.changed[ChangeNewlyLimited], r.changed[ChangeNewlyAdmitted], r.shadowed[0], r.shadowed[1]} {
			color := ""
			if n > 0 {
				color = [...]string{2: "denied", 3: "allowed", 5: ""}[i]
			}
			row = append(row, cell{Text: number(n, page), Color: color})
		}
		t.add(append(row, textCell(r.edit), cell{Spark: newSpark(&c.sparks, "fill-faint", "fill-denied", r.over)})...)
		edited, shadow = edited || r.edit != "", shadow || r.shadowed != [2]int64{}
	}
	if !edited {
		t.remove(7, 8)
	}
	if !shadow {
		t.remove(5, 7)
	}
	return t
}

// weight returns the number of requests that a rule affects.
func (r *ruleChange) weight() int64 {
	return r.changed[ChangeNewlyLimited] + r.changed[ChangeNewlyAdmitted]
}

// addChangedKeys adds the keys with the most requests for a change.
func (c *Comparison) addChangedKeys(d *document, r *Report, page bool, names *keyNames, change Change) {
	list := &c.keys[change]
	if len(list.tallies) == 0 {
		return
	}
	title := strings.ReplaceAll(change.String(), "_", " ")
	t := &sheet{ID: strings.TrimPrefix(title, "newly "), Title: strings.ToUpper(title[:1]) + title[1:], Columns: []column{
		{Kind: "key", text: strings.ToUpper(title), Page: "Key"}, {Kind: "mono", text: "RULE", Page: "Rule"}, {Kind: "num", text: "REQUESTS", Page: "Requests"},
		{Kind: "bar", Page: "Share", drop: 3}, {Kind: "when", text: "FIRST", Page: "First", drop: 1}, {Kind: "when", text: "LAST", Page: "Last", drop: 2},
		{Kind: "key", text: "FOR EXAMPLE", Page: "For example"},
	}}
	c.addKeys(t, r, page, list, c.changed[change].count, func(string) string { return colorOfChange[change] }, names)
	d.Tables = append(d.Tables, t)
}
