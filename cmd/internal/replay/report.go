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
	"github.com/metehq/mete/cmd/internal/table"
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
	if describeTrace(b, r.Trace, r.Format, s.requests); s.requests.count == 0 {
		return
	}
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
	if s.blocked > 0 {
		row("blocked", s.blocked, "of those, by an override")
	}
	if s.excepted > 0 {
		row("excepted", s.excepted, "let through by an override")
	}
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
		t.Add(name, entry.rule, strconv.FormatInt(entry.count, 10), r.instant(entry.first), r.instant(entry.last))
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

func (r Report) instant(i bucket.Instant) string { return instant(i, r.Stats.requests.last) }
