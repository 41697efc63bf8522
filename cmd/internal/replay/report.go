// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/cmd/internal/prose"
)

// A Report is what people want to know after a replay.
type Report struct {
	Policy, Trace string // the names of the files
	Format        string // of the trace
	Stats         *Stats
	Elapsed       time.Duration // in real time; 0 leaves the speed out

	// ShowKeys shows who was denied. Without it, keys have numbers: a report
	// is passed on more easily than a log.
	ShowKeys bool

	Screen Screen // of the text
}

// maxShownKeys bounds the list of the most denied keys.
const maxShownKeys = 10

// WriteTo writes the report as text.
func (r Report) WriteTo(w io.Writer) (int64, error) {
	var b strings.Builder
	s := r.Stats
	fmt.Fprintf(&b, "policy    %s, %s\n", r.Screen.line(r.Policy), prose.Count(len(s.rules), "rule"))
	if describeTrace(&b, r.Screen, r.Trace, r.Format, s.requests, &s.order); s.requests.count > 0 {
		r.summary(&b)
		chart{times: &s.times, last: s.requests.last, rows: []chartRow{
			{"allowed", sum(s.over[passed], s.over[spared]), 4, green}, {"in shadow", s.over[spared], 2, magenta}, {"denied", s.over[denied], 4, red},
		}}.writeTo(&b, r.Screen)
		r.rules(&b)
		r.keys(&b)
	}
	r.Screen.notes(&b, r.notes())
	n, err := io.WriteString(w, b.String())
	return int64(n), err
}

func (r Report) summary(b *strings.Builder) {
	s := r.Stats
	t := newGrid("", ">", ">", "")
	row := func(name string, n int64, note string) {
		t.add(name, strconv.FormatInt(n, 10), percent(n, s.requests.count), note)
	}
	row("allowed", s.requests.count-s.denied.count, "")
	if s.delayed > 0 {
		row("delayed", s.delayed, "of those, for up to "+prose.Duration(s.longest))
	}
	denied := ""
	if s.denied.count > 0 {
		denied = "first " + r.instant(s.denied.first) + ", last " + r.instant(s.denied.last)
	}
	row("denied", s.denied.count, denied)
	if s.blocked > 0 {
		row("blocked", s.blocked, "of those, by an override")
	}
	if s.excepted > 0 {
		row("excepted", s.excepted, "let through by an override")
	}
	if s.unlimited > 0 {
		row("no rule", s.unlimited, "fell under no rule, so allowed")
	}
	t.writeBody(b, r.Screen)
}

func (r Report) rules(b *strings.Builder) {
	t := newGrid("RULE", "MODE", ">REQUESTS", ">DENIED", ">", "", "FIRST DENIED", "LAST DENIED")
	t.givesWay = []int{7, 6, 5, 1}
	for _, rule := range r.Stats.rules {
		first, last := "-", "-"
		if rule.denied.count > 0 {
			first, last = r.instant(rule.denied.first), r.instant(rule.denied.last)
		}
		n := rule.denied.count
		t.add(rule.Name, prose.Mode(rule.Rule), strconv.FormatInt(rule.requests, 10), strconv.FormatInt(n, 10),
			percent(n, rule.requests), share(n, rule.requests), first, last)
	}
	t.write(b, r.Screen, red)
}

func (r Report) keys(b *strings.Builder) {
	top := r.Stats.keys.top(maxShownKeys)
	if len(top) == 0 {
		return
	}
	var all int64
	for _, rule := range r.Stats.rules {
		all += rule.denied.count
	}
	names := keyNames{show: r.ShowKeys}
	t := newGrid("MOST DENIED", "RULE", ">DENIED", "", "FIRST DENIED", "LAST DENIED")
	t.givesWay = []int{5, 4, 3}
	for _, entry := range top {
		t.add(names.of(entry), entry.rule, strconv.FormatInt(entry.count, 10), share(entry.count, all),
			r.instant(entry.first), r.instant(entry.last))
	}
	t.write(b, r.Screen, red)
}

// notes says what one has to know to read the numbers.
func (r Report) notes() (notes []string) {
	s := r.Stats
	note := func(format string, args ...any) { notes = append(notes, fmt.Sprintf(format, args...)) }
	for _, rule := range s.rules {
		if rule.shadowed {
			note("shadow rules only say what they would deny; nothing is denied by them")
			break
		}
	}
	if s.lacking > 0 {
		note("%s denied because the trace does not say what a rule is keyed by (on_missing: deny);"+
			" an access log has no headers but two, and no claims", prose.Count(s.lacking, "request was", "requests were"))
	}
	if len(s.keys.tallies) > 0 && !r.ShowKeys {
		note("--show-keys shows who the keys are")
	}
	if s.keys.missed > 0 {
		note("there are more than %d denied keys: the counts of single keys may be up to %d short", maxTallies, s.keys.missed)
	}
	if s.invalid > 0 {
		note("%s not read", prose.Count(s.invalid, "invalid line was", "invalid lines were"))
	}
	if r.Elapsed > 0 && s.requests.count > 0 {
		note("replayed in %s, %.0f requests a second", r.Elapsed.Round(time.Millisecond), float64(s.requests.count)/r.Elapsed.Seconds())
	}
	return notes
}

func (r Report) instant(i bucket.Instant) string { return within(i, r.Stats.requests) }
