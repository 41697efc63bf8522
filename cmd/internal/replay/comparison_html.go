// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"cmp"
	"fmt"
	"io"
	"slices"

	"github.com/metehq/mete/cmd/internal/display"
	"github.com/metehq/mete/cmd/internal/prose"
)

// WriteHTML writes the report as one page, as [Report.WriteHTML] does.
func (r ComparisonReport) WriteHTML(w io.Writer) error {
	c := r.Comparison
	p := page{Title: "From " + display.Inert(r.Old) + " to " + display.Inert(r.New) + ", on " + display.Inert(r.Trace), Kind: "comparison of two policies",
		PolicyTitle: "The new policy in words"}
	p.Facts = append([]pageFact{
		{"Old policy", display.Inert(r.Old) + ", " + prose.Count(len(c.policies[0]), "rule")},
		{"New policy", display.Inert(r.New) + ", " + prose.Count(len(c.policies[1]), "rule")},
	}, traceFacts(r.Trace, r.Format, c.requests, &c.order)...)
	p.Headline = r.headline()
	if c.requests.count > 0 {
		p.Tiles = r.tiles()
		p.Figures = r.figures()
		p.Changes, p.RulesLeft = r.pageChanges()
		p.Shadow = c.hasShadow()
	}
	names := keyNames{show: r.ShowKeys}
	for _, list := range []struct {
		change            Change
		id, title, colour string
	}{{NewlyLimited, "limited", "Newly limited", "denied"}, {NewlyAdmitted, "admitted", "Newly admitted", "allowed"}} {
		if keys := &c.keys[list.change]; len(keys.tallies) > 0 {
			p.Keys = append(p.Keys, keysOf(pageKeys{ID: list.id, Title: list.title, Examples: true}, keys, c.changed[list.change].count,
				func(string) string { return list.colour }, &names, r.instant))
		}
	}
	edits := map[string]string{}
	for _, rule := range c.rules {
		edits[rule.name] = rule.edit
	}
	p.Policy, p.PolicyLeft = words(c.new, edits)
	r.Elapsed = 0
	for _, note := range r.notes() {
		p.Notes = append(p.Notes, display.Inert(note))
	}
	return p.write(w)
}

func (r ComparisonReport) headline() string {
	c := r.Comparison
	limited, admitted := c.changed[NewlyLimited].count, c.changed[NewlyAdmitted].count
	switch {
	case c.requests.count == 0:
		return "There are no requests in the trace"
	case limited+admitted == 0:
		return "The two policies decide alike about " + requestCount(c.requests.count)
	case limited == 0:
		return requestCount(admitted) + " newly admitted, none newly limited"
	case admitted == 0:
		return requestCount(limited) + " newly limited, none newly admitted"
	}
	return requestCount(limited) + " newly limited, " + grouped(admitted) + " newly admitted"
}

func (r ComparisonReport) tiles() (tiles []pageTile) {
	c := r.Comparison
	all := c.requests.count
	tiles = append(tiles, pageTile{"Requests", "", grouped(all), "", "in " + lasting(c.requests.last-c.requests.first)})
	for _, kind := range []struct {
		change       Change
		name, colour string
	}{{NewlyLimited, "Newly limited", "denied"}, {NewlyAdmitted, "Newly admitted", "allowed"}, {SameAllowed, "Allowed by both", ""}, {SameDenied, "Denied by both", ""}} {
		times, note := c.changed[kind.change], ""
		if times.count > 0 && kind.change.Differs() {
			note = "first " + r.instant(times.first) + ", last " + r.instant(times.last)
		}
		tiles = append(tiles, pageTile{kind.name, kind.colour, grouped(times.count), percent(times.count, all), note})
	}
	return tiles
}

// figures show when the policies disagree, and when each of them denies.
func (r ComparisonReport) figures() (list []*figure) {
	c := r.Comparison
	for _, f := range []figure{
		{ID: "changes", Title: "Where they disagree", Series: []figureSeries{
			{Label: "newly limited", Colour: "denied", Kind: "bars", counts: c.over[NewlyLimited]},
			{Label: "newly admitted", Colour: "allowed", Kind: "bars", counts: c.over[NewlyAdmitted]},
		}},
		{ID: "denials", Title: "Denied by each", Lines: true, Series: []figureSeries{
			{Label: "by the old policy", Colour: "level", Kind: "line", Dash: []int{5, 4}, counts: sum(c.over[SameDenied], c.over[NewlyAdmitted])},
			{Label: "by the new policy", Colour: "denied", Kind: "line", counts: sum(c.over[SameDenied], c.over[NewlyLimited])},
		}},
	} {
		if drawn := newFigure(f, &c.times, c.requests.last); drawn != nil {
			list = append(list, drawn)
		}
	}
	return list
}

// weight is how much there is to say of a rule.
func (r *ruleChange) weight() int64 {
	return r.changed[NewlyLimited] + r.changed[NewlyAdmitted]
}

// pageChanges are the rules that change the most, in the order of the text.
func (r ComparisonReport) pageChanges() (rows []pageChange, left string) {
	c := r.Comparison
	rules := c.rules
	if len(rules) > maxPageRules {
		most := slices.SortedStableFunc(slices.Values(rules), func(a, b *ruleChange) int {
			return cmp.Or(cmp.Compare(b.weight(), a.weight()), cmp.Compare(b.denied[1], a.denied[1]))
		})[:maxPageRules]
		left = fmt.Sprintf("the %d of %s that change the most", maxPageRules, prose.Count(len(rules), "rule"))
		rules = slices.DeleteFunc(slices.Clone(rules), func(r *ruleChange) bool { return !slices.Contains(most, r) })
	}
	for _, rule := range rules {
		rows = append(rows, pageChange{Name: rule.name, Edit: rule.edit, DeniedOld: grouped(rule.denied[0]), DeniedNew: grouped(rule.denied[1]),
			Limited: grouped(rule.changed[NewlyLimited]), Admitted: grouped(rule.changed[NewlyAdmitted]),
			ShadowOld: grouped(rule.shadowed[0]), ShadowNew: grouped(rule.shadowed[1]),
			Spark: newSpark(&c.sparks, path{Class: "fill-faint"}, path{Class: "fill-denied"}, rule.over)})
	}
	return rows, left
}

// hasShadow reports whether any rule would deny something in shadow.
func (c *Comparison) hasShadow() bool {
	return slices.ContainsFunc(c.rules, func(r *ruleChange) bool { return r.shadowed != [2]int64{} })
}
