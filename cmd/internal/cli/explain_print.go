// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/metehq/mete/api"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/cmd/internal/display"
	"github.com/metehq/mete/cmd/internal/table"
	"github.com/metehq/mete/internal/prose"
	"github.com/metehq/mete/internal/visible"
	"github.com/metehq/mete/policy"
)

// explainWidth is how wide an explanation is, in letters, where its names allow.
const explainWidth = 96

// print writes an explanation.
func (c *explainCommand) print(e *api.Explanation) error {
	if c.format == "json" {
		return writeJSON(c.std.Out, e)
	}
	var b strings.Builder
	writeWrapped(&b, "", passing(e))
	if len(e.Rules) > 0 {
		fmt.Fprintf(&b, "\n%s\n", c.source(e))
		writeRules(&b, e)
	}
	writeBuckets(&b, e)
	if notes := append(slices.Clone(c.request.notes), c.notes(e)...); len(notes) > 0 {
		b.WriteString("\n")
		for _, note := range notes {
			writeWrapped(&b, "note: ", note)
		}
	}
	text := visible.Lines(b.String()) // others have written reasons and authors
	_, err := fmt.Fprint(c.std.Out, paintExplanation(text, e.Decision.Allowed, painterOf(c.std.Out)))
	return err
}

// paintExplanation colors the verdict in the first line and the marks of the rules.
func paintExplanation(text string, allowed bool, paint painter) string {
	first, rest, _ := strings.Cut(text, "\n")
	marks := strings.NewReplacer("\n  ✓ ", "\n  "+paint.green("✓")+" ", "\n  ✗ ", "\n  "+paint.red("✗")+" ", "\n  ~ ", "\n  "+paint.yellow("~")+" ")
	return paint.verdict(first, allowed) + marks.Replace("\n"+rest)
}

// passing is the verdict, and when the request passes.
func passing(e *api.Explanation) string {
	d := &e.Decision
	switch {
	case d.Allowed && d.Wait > 0:
		return fmt.Sprintf("%s; its work starts in %s", e.Why, prose.Duration(d.Wait.Duration()))
	case d.Allowed:
		return e.Why
	case e.PassesAt == nil && d.Degraded:
		return e.Why
	case e.PassesAt == nil:
		return e.Why + "; no wait helps"
	case e.Override != nil:
		return e.Why + "; that ends in " + prose.Duration(d.RetryAfter.Duration())
	}
	return fmt.Sprintf("%s; passes at %s (in %s)", e.Why, instant(e.At, legible(*e.PassesAt, d.RetryAfter.Duration())), prose.Duration(d.RetryAfter.Duration()))
}

// legible is when a wait ends, without the microseconds that lie between asking and
// being answered: midnight is 00:00:00 and not 23:59:59.999986. Rounded up, it
// promises nothing too early.
func legible(end time.Time, wait time.Duration) time.Time {
	if wait < time.Second {
		return end
	}
	return end.Add(time.Millisecond - 1).Truncate(time.Millisecond)
}

// instant formats t, with its day where that is not now's.
func instant(now, t time.Time) string {
	layout := "15:04:05.999999 UTC"
	if now, t := now.UTC(), t.UTC(); now.YearDay() != t.YearDay() || now.Year() != t.Year() {
		layout = "2006-01-02 " + layout
	}
	return t.UTC().Format(layout)
}

// source says which rules follow.
func (c *explainCommand) source(e *api.Explanation) string {
	text := "Rules of " + c.server
	switch c.policy {
	case "":
	case "-":
		text = "Rules of " + stdinName
	default:
		text = "Rules of " + policyName(c.policy)
	}
	if e.PolicyVersion > 0 {
		text += fmt.Sprintf(", version %d", e.PolicyVersion)
	}
	return fmt.Sprintf("%s, in their order, on %s:", text, e.At.UTC().Format("2006-01-02 at 15:04:05.999999 UTC"))
}

// allRules is how many rules are shown whatever became of them.
const allRules = 40

// asides are outcomes of rules that have nothing to do with the request.
var asides = []string{policy.OutcomeUnmatched.String(), policy.OutcomeDisabled.String(), policy.OutcomeTaken.String(), policy.OutcomeUnneeded.String()}

// writeRules writes the outcome of every rule, and the facts of those that have a part in the
// decision. Of many rules, it shows only those.
func writeRules(b *strings.Builder, e *api.Explanation) {
	shown, width := e.Rules, 0
	if len(shown) > allRules {
		shown = slices.DeleteFunc(slices.Clone(shown), func(r api.ExplainedRule) bool {
			return slices.Contains(asides, r.Outcome)
		})
	}
	for _, r := range shown {
		width = max(width, display.Width(r.Name))
	}
	for _, r := range shown {
		writeWrapped(b, fmt.Sprintf("  %s %-*s  ", mark(&r), width, r.Name), r.Why)
		if slices.Contains(asides, r.Outcome) {
			continue
		}
		for _, f := range r.Facts {
			writeWrapped(b, strings.Repeat(" ", width+6), f.Label+": "+f.Value)
		}
	}
	if rest := len(e.Rules) - len(shown); rest > 0 {
		fmt.Fprintf(b, "  - %s more, which do not match, are skipped or off; --format json shows them\n", prose.Count(rest, "rule"))
	}
}

// mark is ✓ for a rule that allows the request, ✗ for one that denies it, ~ for one
// in shadow, and - for one that has no part in it.
func mark(r *api.ExplainedRule) string {
	denies := slices.ContainsFunc(r.Limits, func(l api.ExplainedLimit) bool { return l.Asked && !l.Allowed })
	switch {
	case r.Shadow:
		return "~"
	case r.Outcome == policy.OutcomeDenying.String() || r.Outcome == policy.OutcomeBlocked.String() || denies:
		return "✗"
	case r.Outcome == policy.OutcomeExempt.String(), r.Outcome == policy.OutcomeApplies.String() && slices.ContainsFunc(r.Limits, func(l api.ExplainedLimit) bool { return l.Asked }):
		return "✓"
	}
	return "-"
}

// writeBuckets shows the buckets that the request falls on.
func writeBuckets(b *strings.Builder, e *api.Explanation) {
	t := table.New("LIMIT", ">COST", ">BEFORE", ">AFTER", ">OF", "PASSES", "FULL", "BUCKET")
	t.Indent = "  "
	any := false
	for _, r := range e.Rules {
		for _, l := range r.Limits {
			any = true
			before, after, when := "?", "?", "not asked"
			if l.Asked {
				before, after, when = levelText(l.Before), levelText(l.After), passes(&l)
			}
			t.Add(l.Name, l.Cost.String(), before, after, l.Capacity.String(), when, full(&l), l.Key)
		}
	}
	if any {
		b.WriteString("\n")
		t.WriteTo(b)
	}
}

// levelText is what remains in a bucket or, where nothing does, what is owed.
func levelText(l *api.Level) string {
	if l.Owed != 0 && l.Remaining == 0 {
		return "0, owes " + l.Owed.String()
	}
	return l.Remaining.String()
}

// passes says when a cost passes by one limit.
func passes(l *api.ExplainedLimit) string {
	switch d := l.RetryAfter.Duration(); {
	case !l.Allowed && d == bucket.Never:
		return "never"
	case !l.Allowed:
		return "in " + prose.Duration(d)
	case l.Delay > 0:
		return fmt.Sprintf("in %s (%s used)", prose.Duration(l.Delay.Duration()), l.Stage)
	case l.Stage != "":
		return fmt.Sprintf("now, warned (%s used)", l.Stage)
	}
	return "now"
}

// full says when a bucket is full again.
func full(l *api.ExplainedLimit) string {
	switch d := l.FullAfter.Duration(); {
	case !l.Asked:
		return "?"
	case d == bucket.Never:
		return "never"
	case d > 0:
		return "in " + prose.Duration(d)
	}
	return "now"
}

// notes say what is easily misunderstood.
func (c *explainCommand) notes(e *api.Explanation) (notes []string) {
	var hashes []string
	asked := false
	for _, r := range e.Rules {
		for _, l := range r.Limits {
			asked = asked || l.Asked
			for _, name := range hashedIn(l.Key, r.LimitKeys) {
				if !slices.Contains(hashes, name) {
					hashes = append(hashes, name)
				}
			}
		}
	}
	if len(hashes) > 0 {
		note := fmt.Sprintf("~ stands for a hash of %s: what may be a secret, or is long, is in no key", strings.Join(hashes, ", "))
		if c.policy != "" && os.Getenv(hashKeyVar) == "" {
			note += "; with " + hashKeyVar + " set it is that of the servers"
		}
		notes = append(notes, note)
	}
	if asked && c.policy != "" && c.store == nil {
		notes = append(notes, "buckets are shown full; --server asks a server about them, and --store a store")
	}
	if len(e.Rules) == 0 && e.Override == nil {
		notes = append(notes, "there is no policy, and no rule")
	}
	return notes
}

// writeWrapped writes text behind a heading, and its other lines with the same indent.
func writeWrapped(b *strings.Builder, heading, text string) {
	indent := display.Width(heading)
	lines := display.Wrap(text, max(explainWidth, indent+explainWidth/2), heading, strings.Repeat(" ", indent))
	b.WriteString(strings.Join(lines, "\n") + "\n")
}
