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

// A ComparisonReport is what people want to know before they change a policy.
type ComparisonReport struct {
	Old, New   string // the names of the files
	Trace      string
	Format     string // of the trace
	Comparison *Comparison
	Elapsed    time.Duration // as in [Report]
	ShowKeys   bool          // as in [Report]
	Screen     Screen        // as in [Report]
}

// WriteTo writes the report as text.
func (r ComparisonReport) WriteTo(w io.Writer) (int64, error) {
	var b strings.Builder
	c := r.Comparison
	fmt.Fprintf(&b, "old       %s, %s\n", r.Screen.line(r.Old), prose.Count(len(c.policies[0]), "rule"))
	fmt.Fprintf(&b, "new       %s, %s\n", r.Screen.line(r.New), prose.Count(len(c.policies[1]), "rule"))
	if describeTrace(&b, r.Screen, r.Trace, r.Format, c.requests, &c.order); c.requests.count > 0 {
		r.summary(&b)
		r.chart(&b)
		r.rules(&b)
		names := keyNames{show: r.ShowKeys}
		r.keys(&b, &names, NewlyLimited, "NEWLY LIMITED", red)
		r.keys(&b, &names, NewlyAdmitted, "NEWLY ADMITTED", green)
	}
	r.Screen.notes(&b, r.notes())
	n, err := io.WriteString(w, b.String())
	return int64(n), err
}

func (r ComparisonReport) summary(b *strings.Builder) {
	c := r.Comparison
	t := newGrid("", ">", ">", "")
	for change, name := range changeWords {
		times, note := c.changed[change], ""
		if times.count > 0 && Change(change).Differs() {
			note = "first " + r.instant(times.first) + ", last " + r.instant(times.last)
		}
		t.add(name, strconv.FormatInt(times.count, 10), percent(times.count, c.requests.count), note)
	}
	t.writeBody(b, r.Screen)
}

// changeWords are the changes for people.
var changeWords = [changes]string{"allowed by both", "denied by both", "newly limited", "newly admitted"}

// chart shows when the policies disagree, and how much there was to decide then.
func (r ComparisonReport) chart(b *strings.Builder) {
	c := r.Comparison
	if c.changed[NewlyLimited].count+c.changed[NewlyAdmitted].count == 0 {
		return
	}
	chart{times: &c.times, last: c.requests.last, rows: []chartRow{
		{"requests", sum(c.over[:]...), 2, ""}, {"newly limited", c.over[NewlyLimited], 3, red}, {"newly admitted", c.over[NewlyAdmitted], 3, green},
	}}.writeTo(b, r.Screen)
}

// rules shows under which rules requests are denied, by which policy.
func (r ComparisonReport) rules(b *strings.Builder) {
	c := r.Comparison
	t := newGrid("", ">DENIED BY", ">", ">NEWLY", ">", ">IN SHADOW BY", ">", "")
	t.headings = 2
	t.add("RULE", "OLD", "NEW", "LIMITED", "ADMITTED", "OLD", "NEW", "EDIT")
	for _, rule := range c.rules {
		cells := []string{rule.name}
		for _, n := range [...]int64{rule.denied[0], rule.denied[1], rule.changed[NewlyLimited], rule.changed[NewlyAdmitted], rule.shadowed[0], rule.shadowed[1]} {
			cells = append(cells, strconv.FormatInt(n, 10))
		}
		t.add(append(cells, rule.edit)...)
	}
	if !c.edited() {
		t.drop(7)
	}
	if !c.hasShadow() {
		t.drop(6)
		t.drop(5)
	}
	t.write(b, r.Screen, "")
}

// keys shows whom a change means the most for.
func (r ComparisonReport) keys(b *strings.Builder, names *keyNames, change Change, heading string, bars colour) {
	top := r.Comparison.keys[change].top(maxShownKeys)
	if len(top) == 0 {
		return
	}
	t := newGrid(heading, "RULE", ">REQUESTS", "", "FIRST", "LAST", "FOR EXAMPLE")
	t.givesWay = []int{3, 5, 4}
	for _, entry := range top {
		example := entry.place
		if r.ShowKeys && entry.request != "" {
			example += " " + entry.request
		}
		t.add(names.of(entry), entry.rule, strconv.FormatInt(entry.count, 10), share(entry.count, r.Comparison.changed[change].count),
			r.instant(entry.first), r.instant(entry.last), example)
	}
	t.write(b, r.Screen, bars)
}

// notes says what one has to know to read the numbers.
func (r ComparisonReport) notes() (notes []string) {
	c := r.Comparison
	note := func(format string, args ...any) { notes = append(notes, fmt.Sprintf(format, args...)) }
	limited, admitted := &c.keys[NewlyLimited], &c.keys[NewlyAdmitted]
	if c.requests.count > 0 && c.changed[NewlyLimited].count+c.changed[NewlyAdmitted].count == 0 {
		note("the two policies decide alike")
	}
	if c.shadowed[1] > 0 {
		note("rules in shadow would limit %s that the new policy allows (%d under the old)", prose.Count(c.shadowed[1], "request"), c.shadowed[0])
	}
	if c.delayed != [2]int64{} {
		note("%s later by the old policy, %d by the new", prose.Count(c.delayed[0], "request is let start", "requests are let start"), c.delayed[1])
	}
	if len(limited.tallies)+len(admitted.tallies) > 0 && !r.ShowKeys {
		note("--show-keys shows who the keys are")
	}
	if missed := max(limited.missed, admitted.missed); missed > 0 {
		note("there are more than %d keys in a list: the counts of single keys may be up to %d short", maxTallies, missed)
	}
	if c.invalid > 0 {
		note("%s not read", prose.Count(c.invalid, "invalid line was", "invalid lines were"))
	}
	if r.Elapsed > 0 && c.requests.count > 0 {
		note("replayed in %s, %.0f requests a second", r.Elapsed.Round(time.Millisecond), float64(c.requests.count)/r.Elapsed.Seconds())
	}
	return notes
}

func (r ComparisonReport) instant(i bucket.Instant) string {
	return within(i, r.Comparison.requests)
}
