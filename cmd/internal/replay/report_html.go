// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"cmp"
	"fmt"
	"io"
	"slices"

	"github.com/metehq/mete/cmd/internal/display"
	"github.com/metehq/mete/cmd/internal/prose"
	"github.com/metehq/mete/policy"
)

// WriteHTML writes the report as one page that stands alone. The same report is the same
// page: how long the replay took is not in it.
func (r Report) WriteHTML(w io.Writer) error {
	s := r.Stats
	p := page{Title: "Replay of " + display.Inert(r.Trace) + " under " + display.Inert(r.Policy), Kind: "replay report", PolicyTitle: "The policy in words"}
	p.Facts = append([]pageFact{{"Policy", display.Inert(r.Policy) + ", " + prose.Count(len(s.rules), "rule")}}, traceFacts(r.Trace, r.Format, s.requests, &s.order)...)
	p.Headline = r.headline()
	if s.requests.count > 0 {
		p.Tiles = r.tiles()
		if f := newFigure(figure{ID: "times", Title: "Over time", Series: []figureSeries{
			{Label: "allowed", Colour: "allowed", Kind: "bars", counts: s.over[passed]},
			{Label: "allowed, denied in shadow", Colour: "shadow", Kind: "bars", counts: s.over[spared]},
			{Label: "denied", Colour: "denied", Kind: "bars", counts: s.over[denied]},
		}}, &s.times, s.requests.last); f != nil {
			p.Figures = []*figure{f}
		}
		p.Rules, p.RulesLeft = r.pageRules()
		p.Waits = r.pageWaits()
	}
	if len(s.keys.tallies) > 0 {
		var all int64
		colours := map[string]string{}
		for _, rule := range s.rules {
			all += rule.denied.count
			colours[rule.Name] = colourOf(rule.Rule)
		}
		p.Keys = []pageKeys{keysOf(pageKeys{ID: "keys", Title: "Most denied"}, &s.keys, all, func(rule string) string { return colours[rule] }, &keyNames{show: r.ShowKeys}, r.instant)}
	}
	p.Policy, p.PolicyLeft = words(s.policy, nil)
	r.Elapsed = 0
	for _, note := range r.notes() {
		p.Notes = append(p.Notes, display.Inert(note))
	}
	return p.write(w)
}

func (r Report) headline() string {
	s := r.Stats
	switch all := s.requests.count; s.denied.count {
	case 0:
		if all == 0 {
			return "There are no requests in the trace"
		}
		return "None of " + requestCount(all) + " would be denied"
	case all:
		return "All of " + requestCount(all) + " would be denied"
	default:
		return grouped(s.denied.count) + " of " + requestCount(all) + " would be denied"
	}
}

func (r Report) tiles() []pageTile {
	s := r.Stats
	all := s.requests.count
	var spareds int64
	for _, n := range s.over[spared] {
		spareds += n
	}
	first := ""
	if s.denied.count > 0 {
		first = "first " + r.instant(s.denied.first) + ", last " + r.instant(s.denied.last)
	}
	tiles := []pageTile{
		{"Requests", "", grouped(all), "", "in " + lasting(s.requests.last-s.requests.first)},
		{"Allowed", "allowed", grouped(all - s.denied.count), percent(all-s.denied.count, all), ""},
		{"Denied", "denied", grouped(s.denied.count), percent(s.denied.count, all), first},
	}
	more := func(name, colour string, n int64, note string) {
		if n > 0 {
			tiles = append(tiles, pageTile{name, colour, grouped(n), percent(n, all), note})
		}
	}
	more("In shadow", "shadow", spareds, "allowed; a rule in shadow would deny them")
	more("Delayed", "", s.delayed, "allowed, for up to "+prose.Duration(s.longest)+" later")
	more("Blocked", "", s.blocked, "of the denied, by an override")
	more("Excepted", "", s.excepted, "let through by an override")
	more("No rule", "", s.unlimited, "fell under no rule, so allowed")
	if s.invalid > 0 {
		tiles = append(tiles, pageTile{"Invalid lines", "", grouped(s.invalid), "", "were not read"})
	}
	return tiles
}

// colourOf is the colour of what a rule denies.
func colourOf(r *policy.Rule) string {
	if r.Mode == policy.ModeShadow {
		return "shadow"
	}
	return "denied"
}

// pageRules are the rules that did the most, in the order of the policy.
func (r Report) pageRules() (rows []pageRule, left string) {
	rules := slices.Clone(r.Stats.rules)
	if len(rules) > maxPageRules {
		slices.SortStableFunc(rules, func(a, b *ruleStats) int {
			return cmp.Or(cmp.Compare(b.denied.count, a.denied.count), cmp.Compare(b.requests, a.requests))
		})
		rules = rules[:maxPageRules]
		left = fmt.Sprintf("the %d of %s that denied the most", maxPageRules, prose.Count(len(r.Stats.rules), "rule"))
		rules = slices.DeleteFunc(slices.Clone(r.Stats.rules), func(s *ruleStats) bool { return !slices.Contains(rules, s) })
	}
	for _, rule := range rules {
		n, colour := rule.denied.count, colourOf(rule.Rule)
		row := pageRule{Name: rule.Name, Mode: prose.Mode(rule.Rule), Requests: grouped(rule.requests), Denied: grouped(n), Share: percent(n, rule.requests),
			First: "–", Last: "–", Bar: barOf(n, rule.requests, colour),
			Spark: newSpark(&r.Stats.sparks, path{Class: "fill-faint"}, path{Class: "fill-" + colour}, rule.over)}
		if n > 0 {
			row.First, row.Last = r.instant(rule.denied.first), r.instant(rule.denied.last)
		}
		rows = append(rows, row)
	}
	return rows, left
}

// pageWaits says how long those who were denied had to wait, from the first kind of wait
// that there was to the last.
func (r Report) pageWaits() (rows []pageWait) {
	w := &r.Stats.waits
	for i, n := range w {
		if n > 0 || len(rows) > 0 {
			rows = append(rows, pageWait{waitName(i), grouped(n), percent(n, r.Stats.denied.count), barOf(n, r.Stats.denied.count, "denied")})
		}
	}
	for len(rows) > 0 && rows[len(rows)-1].Count == "0" {
		rows = rows[:len(rows)-1]
	}
	return rows
}
