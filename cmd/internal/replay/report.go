// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"cmp"
	"time"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/prose"
	"github.com/metehq/mete/policy"
)

func (s *Stats) document(r *Report, page bool) *document {
	d := s.newDocument(r, page, fact{"Policy", r.Policy + ", " + prose.Count(len(s.rules), "rule")})
	d.Title, d.Kind, d.Headline = "Replay of "+r.Trace+" under "+r.Policy, "replay report", s.headline()
	if s.requests.count > 0 {
		s.addTotals(d, page)
		d.Bars = chart{&s.line, s.requests.last, []chartRow{
			{"allowed", sum(s.over[passed], s.over[spared]), 4, green}, {"in shadow", s.over[spared], 2, magenta}, {"denied", s.over[denied], 4, red},
		}}
		d.addFigure(figure{ID: "times", Title: "Over time", Series: []figureSeries{
			{Label: "allowed", Color: "allowed", Kind: "bars", counts: s.over[passed]},
			{Label: "allowed, denied in shadow", Color: "shadow", Kind: "bars", counts: s.over[spared]},
			{Label: "denied", Color: "denied", Kind: "bars", counts: s.over[denied]},
		}}, &s.line, s.requests.last)
		d.Tables = append(d.Tables, s.ruleSheet(page))
	}
	if len(s.estimates) > 0 {
		d.Tables = append(d.Tables, s.estimateSheet(page))
	}
	if len(s.keys.tallies) > 0 {
		d.Tables = append(d.Tables, s.keySheet(r, page))
	}
	if page {
		d.addWaits(&s.waits, s.denied.count)
		d.describePolicy(s.policy, nil)
	}
	for _, rule := range s.rules {
		if rule.shadowed {
			d.note("rules in shadow mode deny nothing; the report shows what they would deny")
			break
		}
	}
	if s.lacking > 0 {
		d.note("%s denied because the trace lacks an attribute of limit_keys (on_missing: deny);"+
			" an access log has only two headers and no claims", prose.Count(s.lacking, "request was", "requests were"))
	}
	s.endNotes(d, r, int64(len(s.keys.tallies)), s.keys.missed)
	return d
}

func (s *Stats) headline() string {
	switch all := s.requests.count; {
	case all == 0:
		return "The trace has no requests"
	case s.denied.count == 0:
		return "None of " + requestCount(all) + " would be denied"
	case s.denied.count == all:
		return "All of " + requestCount(all) + " would be denied"
	default:
		return groupDigits(s.denied.count) + " of " + requestCount(all) + " would be denied"
	}
}

// addTotals adds the totals. It omits optional totals that are 0.
func (s *Stats) addTotals(d *document, page bool) {
	more := func(name, color string, n int64, note string) {
		if n > 0 {
			s.total(d, page, name, color, n, note)
		}
	}
	s.total(d, page, "allowed", "allowed", s.requests.count-s.denied.count, "")
	more("delayed", "", s.delayed, "allowed, for up to "+prose.Duration(s.longest)+" later")
	s.total(d, page, "denied", "denied", s.denied.count, s.times(s.denied))
	if page {
		var n int64
		for _, count := range s.over[spared] {
			n += count
		}
		more("in shadow", "shadow", n, "allowed; a rule in shadow would deny them")
	}
	more("blocked", "", s.blocked, "of the denied, by an override")
	more("excepted", "", s.excepted, "allowed by an override")
	more("no rule", "", s.unlimited, "allowed, because no rule applied")
	if page && s.invalid > 0 {
		d.Totals = append(d.Totals, total{Name: "Invalid lines", Count: groupDigits(s.invalid), Note: "were skipped"})
	}
}

func colorOf(r *policy.Rule) string {
	if r.Mode == policy.ModeShadow {
		return "shadow"
	}
	return "denied"
}

func (s *Stats) ruleSheet(page bool) *sheet {
	t := &sheet{ID: "rules", Title: "Rules", Columns: []column{
		{Kind: "mono", text: "RULE", Page: "Rule"}, {Kind: "badge", text: "MODE", Page: "Mode", drop: 1}, {Kind: "num", text: "REQUESTS", Page: "Requests"},
		{Kind: "num", text: "DENIED", Page: "Denied"}, {Kind: "share", Page: "Share denied", drop: 2}, {Kind: "spark", Page: "Over time"},
		{Kind: "when", text: "FIRST DENIED", Page: "First denied", drop: 3}, {Kind: "when", text: "LAST DENIED", Page: "Last denied", drop: 4},
	}}
	rules, left := mostOf(s.rules, page, func(a, b *ruleStats) int {
		return cmp.Or(cmp.Compare(a.denied.count, b.denied.count), cmp.Compare(a.requests, b.requests))
	}, "denied")
	t.About = left
	for _, rule := range rules {
		n, color, first, last := rule.denied.count, colorOf(rule.Rule), "-", "-"
		if n > 0 {
			first, last = s.formatTime(rule.denied.first), s.formatTime(rule.denied.last)
		}
		t.add(textCell(rule.Name), textCell(rule.Rule.Mode.String()), textCell(number(rule.requests, page)), textCell(number(n, page)), partCell(n, rule.requests, color),
			cell{Spark: newSpark(&s.sparks, "fill-faint", "fill-"+color, rule.over)}, textCell(first), textCell(last))
	}
	return t
}

// keySheet returns a table of the keys with the most denials.
func (s *Stats) keySheet(r *Report, page bool) *sheet {
	var all int64
	colors := map[string]string{}
	for _, rule := range s.rules {
		all += rule.denied.count
		colors[rule.Name] = colorOf(rule.Rule)
	}
	t := &sheet{ID: "keys", Title: "Most denied", Columns: []column{
		{Kind: "key", text: "MOST DENIED", Page: "Key"}, {Kind: "mono", text: "RULE", Page: "Rule"}, {Kind: "num", text: "DENIED", Page: "Requests"},
		{Kind: "bar", Page: "Share", drop: 1}, {Kind: "when", text: "FIRST DENIED", Page: "First", drop: 2}, {Kind: "when", text: "LAST DENIED", Page: "Last", drop: 3},
	}}
	s.addKeys(t, r, page, &s.keys, all, func(rule string) string { return colors[rule] }, &keyNames{show: r.ShowKeys})
	return t
}

// waitBounds are the upper bounds of the intervals for waits.
var waitBounds = [...]time.Duration{
	10 * time.Millisecond, 100 * time.Millisecond, time.Second, 10 * time.Second, time.Minute, 10 * time.Minute, time.Hour,
}

// waits counts the waits of denied requests. The last two counters are for an hour or more, and for never.
type waits [len(waitBounds) + 2]int64

func (w *waits) add(d time.Duration) {
	i := 0
	for i < len(waitBounds) && d >= waitBounds[i] {
		i++
	}
	if d == bucket.Never {
		i++
	}
	w[i]++
}

func waitName(i int) string {
	switch {
	case i == 0:
		return "below " + prose.Duration(waitBounds[0])
	case i < len(waitBounds):
		return prose.Duration(waitBounds[i-1]) + " to " + prose.Duration(waitBounds[i])
	case i == len(waitBounds):
		return prose.Duration(waitBounds[i-1]) + " or more"
	}
	return "no wait helps"
}

// addWaits adds the waits of denied requests, from the first to the last nonzero interval.
func (d *document) addWaits(w *waits, all int64) {
	t := &sheet{ID: "waits", Title: "Wait times of denied requests", About: "Retry-After of each denial", Columns: []column{
		{Kind: "name", Page: "Wait"}, {Kind: "num", Page: "Requests"}, {Kind: "share", Page: "Share"},
	}}
	end := len(w)
	for end > 0 && w[end-1] == 0 {
		end--
	}
	for i, n := range w[:end] {
		if n == 0 && len(t.Rows) == 0 {
			continue
		}
		t.add(textCell(waitName(i)), textCell(groupDigits(n)), partCell(n, all, "denied"))
	}
	if len(t.Rows) > 0 {
		d.Tables = append(d.Tables, t)
	}
}
