// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/cmd/internal/prose"
	"github.com/metehq/mete/cmd/internal/table"
	"github.com/metehq/mete/internal/seconds"
	"github.com/metehq/mete/policy"
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
}

// maxShownKeys bounds the list of the most denied keys.
const maxShownKeys = 10

// WriteTo writes the report as text.
func (r Report) WriteTo(w io.Writer) (int64, error) {
	var b strings.Builder
	r.summary(&b)
	r.rules(&b)
	r.keys(&b)
	r.notes(&b)
	n, err := io.WriteString(w, b.String())
	return int64(n), err
}

func (r Report) summary(b *strings.Builder) {
	s := r.Stats
	fmt.Fprintf(b, "policy    %s, %s\n", r.Policy, prose.Count(len(s.rules), "rule"))
	fmt.Fprintf(b, "trace     %s, %s, %s", r.Trace, r.Format, prose.Count(s.requests.count, "request"))
	if s.requests.count == 0 {
		b.WriteString("\n")
		return
	}
	over := s.requests.last - s.requests.first
	fmt.Fprintf(b, " in %s\n", lasting(over))
	fmt.Fprintf(b, "from      %s\nto        %s\n\n", r.instant(s.requests.first), r.instant(s.requests.last))

	t := table.New("", ">", ">", "")
	row := func(name string, n int64, note string) {
		t.Add(name, strconv.FormatInt(n, 10), percent(n, s.requests.count), note)
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
	if s.unlimited > 0 {
		row("no rule", s.unlimited, "fell under no rule, so allowed")
	}
	var rows strings.Builder
	t.WriteTo(&rows)
	_, body, _ := strings.Cut(rows.String(), "\n") // it needs no headings
	b.WriteString(body)
}

func (r Report) rules(b *strings.Builder) {
	if r.Stats.requests.count == 0 {
		return
	}
	t := table.New("RULE", "MODE", ">REQUESTS", ">DENIED", ">", "FIRST DENIED", "LAST DENIED")
	for _, rule := range r.Stats.rules {
		first, last := "-", "-"
		if rule.denied.count > 0 {
			first, last = r.instant(rule.denied.first), r.instant(rule.denied.last)
		}
		t.Add(rule.Name, prose.Mode(rule.Rule), strconv.FormatInt(rule.requests, 10), strconv.FormatInt(rule.denied.count, 10),
			percent(rule.denied.count, rule.requests), first, last)
	}
	b.WriteString("\n")
	t.WriteTo(b)
}

func (r Report) keys(b *strings.Builder) {
	top := r.Stats.keys.top(maxShownKeys)
	if len(top) == 0 {
		return
	}
	t := table.New("MOST DENIED", "RULE", ">DENIED", "FIRST DENIED", "LAST DENIED")
	for i, entry := range top {
		name := entry.key
		if !r.ShowKeys {
			name = fmt.Sprintf("key %d", i+1)
		}
		t.Add(name, entry.rule.Name, strconv.FormatInt(entry.count, 10), r.instant(entry.first), r.instant(entry.last))
	}
	b.WriteString("\n")
	t.WriteTo(b)
}

// notes says what one has to know to read the numbers.
func (r Report) notes(b *strings.Builder) {
	s := r.Stats
	var notes []string
	note := func(format string, args ...any) { notes = append(notes, fmt.Sprintf(format, args...)) }
	for _, rule := range s.rules {
		if rule.Mode > policy.Enforce && rule.denied.count > 0 {
			note("shadow rules only say what they would deny; nothing is denied by them")
			break
		}
	}
	if len(s.keys.tallies) > 0 && !r.ShowKeys {
		note("--show-keys shows who the keys are")
	}
	if s.keys.missed > 0 {
		note("there are more than %d denied keys: the counts of single keys may be up to %d short", maxTallies, s.keys.missed)
	}
	if s.earlier > 0 {
		note("%s older than the one before; inside a bucket time stands still for them", prose.Count(s.earlier, "request is", "requests are"))
	}
	if s.invalid > 0 {
		note("%s not read", prose.Count(s.invalid, "invalid line was", "invalid lines were"))
	}
	if r.Elapsed > 0 && s.requests.count > 0 {
		note("replayed in %s, %.0f requests a second", r.Elapsed.Round(time.Millisecond), float64(s.requests.count)/r.Elapsed.Seconds())
	}
	if len(notes) > 0 {
		b.WriteString("\n" + strings.Join(notes, "\n") + "\n")
	}
}

// dateFrom is the instant from which times are taken for dates: traces that
// start at 0 are shown in seconds.
const dateFrom = bucket.Instant(1_000_000_000 * 1_000_000) // in 2001

func (r Report) instant(i bucket.Instant) string {
	if r.Stats.requests.last < dateFrom {
		return string(seconds.Append(nil, int64(i))) + " s"
	}
	return i.Time().Format("2006-01-02 15:04:05.999999Z")
}

// lasting formats a length of time in microseconds for people.
func lasting(micros bucket.Instant) string {
	if micros > bucket.Instant(bucket.Never/time.Microsecond) {
		return string(seconds.Append(nil, int64(micros))) + " s"
	}
	return prose.Duration(time.Duration(micros) * time.Microsecond)
}

// percent formats n of all, rounded to two decimals: only all of them are 100 %,
// and only none of them are 0 %.
func percent(n, all int64) string {
	if all == 0 {
		return "-"
	}
	parts := int64(math.Round(float64(n) / float64(all) * 10_000))
	switch {
	case n > 0 && parts == 0:
		return "< 0.01 %"
	case n < all && parts == 10_000:
		return "> 99.99 %"
	}
	return fmt.Sprintf("%d.%02d %%", parts/100, parts%100)
}
