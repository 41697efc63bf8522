// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/cmd/internal/prose"
	"github.com/metehq/mete/cmd/internal/table"
)

// A ComparisonReport is what people want to know before they change a policy.
type ComparisonReport struct {
	Old, New   string // the names of the files
	Trace      string
	Format     string // of the trace
	Comparison *Comparison
	Elapsed    time.Duration // as in [Report]
	ShowKeys   bool          // as in [Report]
}

// WriteTo writes the report as text.
func (r ComparisonReport) WriteTo(w io.Writer) (int64, error) {
	var b strings.Builder
	fmt.Fprintf(&b, "old       %s, %s\n", r.Old, prose.Count(len(r.Comparison.policies[0]), "rule"))
	fmt.Fprintf(&b, "new       %s, %s\n", r.New, prose.Count(len(r.Comparison.policies[1]), "rule"))
	describeTrace(&b, r.Trace, r.Format, r.Comparison.requests)
	if r.Comparison.requests.count > 0 {
		r.summary(&b)
		r.rules(&b)
		r.keys(&b, NewlyLimited, "NEWLY LIMITED")
		r.keys(&b, NewlyAdmitted, "NEWLY ADMITTED")
	}
	r.notes(&b)
	n, err := io.WriteString(w, b.String())
	return int64(n), err
}

func (r ComparisonReport) summary(b *strings.Builder) {
	c := r.Comparison
	t := table.New("", ">", ">", "")
	for change, name := range [changes]string{"allowed by both", "denied by both", "newly limited", "newly admitted"} {
		times, note := c.changed[change], ""
		if times.count > 0 && Change(change).Differs() {
			note = "first " + r.instant(times.first) + ", last " + r.instant(times.last)
		}
		t.Add(name, strconv.FormatInt(times.count, 10), percent(times.count, c.requests.count), note)
	}
	var rows strings.Builder
	t.WriteTo(&rows)
	_, body, _ := strings.Cut(rows.String(), "\n") // it needs no headings
	b.WriteString(body)
}

// rules shows under which rules requests are denied, by which policy.
func (r ComparisonReport) rules(b *strings.Builder) {
	c := r.Comparison
	shadow := slices.ContainsFunc(c.rules, func(r *ruleChange) bool { return r.shadowed != [2]int64{} })
	headings := []string{"RULE", ">DENIED BY OLD", ">BY NEW", ">NEWLY LIMITED", ">NEWLY ADMITTED"}
	if shadow {
		headings = append(headings, ">IN SHADOW BY OLD", ">BY NEW")
	}
	if c.edited() {
		headings = append(headings, "EDIT")
	}
	t := table.New(headings...)
	for _, rule := range c.rules {
		cells := []string{rule.name}
		counts := []int64{rule.denied[0], rule.denied[1], rule.changed[NewlyLimited], rule.changed[NewlyAdmitted]}
		if shadow {
			counts = append(counts, rule.shadowed[:]...)
		}
		for _, n := range counts {
			cells = append(cells, strconv.FormatInt(n, 10))
		}
		if c.edited() {
			cells = append(cells, rule.edit)
		}
		t.Add(cells...)
	}
	b.WriteString("\n")
	t.WriteTo(b)
}

// keys shows whom a change means the most for.
func (r ComparisonReport) keys(b *strings.Builder, change Change, heading string) {
	top := r.Comparison.keys[change].top(maxShownKeys)
	if len(top) == 0 {
		return
	}
	t := table.New(heading, "RULE", ">REQUESTS", "FIRST", "LAST", "FOR EXAMPLE")
	for i, entry := range top {
		example := entry.place
		if r.ShowKeys && entry.request != "" {
			example += " " + entry.request
		}
		t.Add(shownKey(entry, i, r.ShowKeys), entry.rule, strconv.FormatInt(entry.count, 10),
			r.instant(entry.first), r.instant(entry.last), example)
	}
	b.WriteString("\n")
	t.WriteTo(b)
}

// shownKey names the i'th key of a list.
func shownKey(entry *tally, i int, show bool) string {
	if show {
		return entry.key
	}
	return fmt.Sprintf("key %d", i+1)
}

// notes says what one has to know to read the numbers.
func (r ComparisonReport) notes(b *strings.Builder) {
	c := r.Comparison
	var notes []string
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
	if len(notes) > 0 {
		b.WriteString("\n" + strings.Join(notes, "\n") + "\n")
	}
}

func (r ComparisonReport) instant(i bucket.Instant) string {
	return instant(i, r.Comparison.requests.last)
}
