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

// explainWidth is the line width of an explanation, in characters. Long names may exceed it.
const explainWidth = 96

func (c *explainCommand) print(e *api.Explanation) error {
	if c.format == "json" {
		return writeJSON(c.std.Out, e)
	}
	var b strings.Builder
	writeWrapped(&b, "", verdictText(e))
	if len(e.Rules) > 0 {
		fmt.Fprintf(&b, "\n%s\n", c.sourceText(e))
		writeRules(&b, e)
	}
	writeBuckets(&b, e)
	if notes := append(slices.Clone(c.request.notes), c.notes(e)...); len(notes) > 0 {
		b.WriteString("\n")
		for _, note := range notes {
			writeWrapped(&b, "note: ", note)
		}
	}
	text := visible.Lines(b.String()) // reasons and authors are untrusted text
	_, err := fmt.Fprint(c.std.Out, paintExplanation(text, e.Decision.Allowed, newPainter(c.std.Out)))
	return err
}

func paintExplanation(text string, allowed bool, paint painter) string {
	first, rest, _ := strings.Cut(text, "\n")
	marks := strings.NewReplacer("\n  ✓ ", "\n  "+paint.green("✓")+" ", "\n  ✗ ", "\n  "+paint.red("✗")+" ", "\n  ~ ", "\n  "+paint.yellow("~")+" ")
	return paint.verdict(first, allowed) + marks.Replace("\n"+rest)
}

func verdictText(e *api.Explanation) string {
	d := &e.Decision
	switch {
	case d.Allowed && d.Wait > 0:
		return fmt.Sprintf("%s; it starts in %s", e.Why, prose.Duration(d.Wait.Duration()))
	case d.Allowed:
		return e.Why
	case e.PassesAt == nil && d.Degraded:
		return e.Why
	case e.PassesAt == nil:
		return e.Why + "; no wait helps"
	case e.Override != nil:
		return e.Why + "; that ends in " + prose.Duration(d.RetryAfter.Duration())
	}
	return fmt.Sprintf("%s; passes at %s (in %s)", e.Why, formatInstant(e.At, roundEnd(*e.PassesAt, d.RetryAfter.Duration())), prose.Duration(d.RetryAfter.Duration()))
}

// roundEnd rounds the end of a wait up to hide the microseconds between the request and its answer. Midnight then
// prints as 00:00:00 instead of 23:59:59.999986. The result is never before end.
func roundEnd(end time.Time, wait time.Duration) time.Time {
	if wait < time.Second {
		return end
	}
	return end.Add(time.Millisecond - 1).Truncate(time.Millisecond)
}

// formatInstant formats t, with its date if that differs from the date of now.
func formatInstant(now, t time.Time) string {
	layout := "15:04:05.999999 UTC"
	if now, t := now.UTC(), t.UTC(); now.YearDay() != t.YearDay() || now.Year() != t.Year() {
		layout = "2006-01-02 " + layout
	}
	return t.UTC().Format(layout)
}

func (c *explainCommand) sourceText(e *api.Explanation) string {
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
	if e.PriceVersion != "" {
		text += ", prices " + e.PriceVersion
	}
	if e.PriceDate != "" && e.PriceDate != e.PriceVersion {
		text += " of " + e.PriceDate
	}
	return fmt.Sprintf("%s, in policy order, on %s:", text, e.At.UTC().Format("2006-01-02 at 15:04:05.999999 UTC"))
}

// allRules is the largest number of rules that an explanation lists completely.
const allRules = 40

// minorOutcomes are the outcomes of rules that do not take part in the decision.
var minorOutcomes = []string{policy.OutcomeUnmatched.String(), policy.OutcomeDisabled.String(), policy.OutcomeInactive.String(), policy.OutcomeTaken.String(), policy.OutcomeUnneeded.String()}

// writeRules writes the outcome of every rule and the details of rules that take part in the decision. If a policy
// has more than allRules rules, writeRules omits the others.
func writeRules(b *strings.Builder, e *api.Explanation) {
	shown, width := e.Rules, 0
	if len(shown) > allRules {
		shown = slices.DeleteFunc(slices.Clone(shown), func(r api.ExplainedRule) bool {
			return slices.Contains(minorOutcomes, r.Outcome)
		})
	}
	for _, r := range shown {
		width = max(width, display.Width(r.Name))
	}
	for _, r := range shown {
		writeWrapped(b, fmt.Sprintf("  %s %-*s  ", ruleMark(&r), width, r.Name), r.Why)
		if slices.Contains(minorOutcomes, r.Outcome) {
			continue
		}
		for _, f := range r.Facts {
			writeWrapped(b, strings.Repeat(" ", width+6), f.Label+": "+f.Value)
		}
	}
	if rest := len(e.Rules) - len(shown); rest > 0 {
		fmt.Fprintf(b, "  - %s more that do not match, are skipped or off; --format json shows them\n", prose.Count(rest, "rule"))
	}
}

// ruleMark returns ✓ for a rule that allows the request, and ✗ for one that denies it. It returns ~ for a rule in
// shadow mode, and - for a rule that does not take part.
func ruleMark(r *api.ExplainedRule) string {
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

func writeBuckets(b *strings.Builder, e *api.Explanation) {
	t := table.New("LIMIT", ">COST", ">BEFORE", ">AFTER", ">OF", "PASSES", "FULL", "BUCKET")
	t.Indent = "  "
	any := false
	for _, r := range e.Rules {
		for _, l := range r.Limits {
			any = true
			before, after, when := "?", "?", "not read"
			if l.Asked {
				before, after, when = levelText(l.Before), levelText(l.After), passText(&l)
			}
			t.Add(l.Name, l.Cost.String(), before, after, l.Capacity.String(), when, fullText(&l), l.Key)
		}
	}
	if any {
		b.WriteString("\n")
		t.WriteTo(b)
	}
}

func levelText(l *api.Level) string {
	if l.Owed != 0 && l.Remaining == 0 {
		return "0, owes " + l.Owed.String()
	}
	return l.Remaining.String()
}

// passText returns when the limit admits the cost.
func passText(l *api.ExplainedLimit) string {
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

func fullText(l *api.ExplainedLimit) string {
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

// notes returns hints about facts that readers often misunderstand.
func (c *explainCommand) notes(e *api.Explanation) (notes []string) {
	var hashes []string
	asked := false
	for _, r := range e.Rules {
		for _, l := range r.Limits {
			asked = asked || l.Asked
			for _, name := range findHashed(l.Key, r.LimitKeys) {
				if !slices.Contains(hashes, name) {
					hashes = append(hashes, name)
				}
			}
		}
	}
	if len(hashes) > 0 {
		note := fmt.Sprintf("~ marks a hash of %s: keys contain no long values and no possible secrets", strings.Join(hashes, ", "))
		if c.policy != "" && os.Getenv(hashKeyVar) == "" {
			note += "; with " + hashKeyVar + " set, it is the same as on the servers"
		}
		notes = append(notes, note)
	}
	if asked && c.policy != "" && c.store == nil {
		notes = append(notes, "buckets are shown full; --server and --store show their real state")
	}
	if len(e.Rules) == 0 && e.Override == nil {
		notes = append(notes, "the policy has no rules")
	}
	return notes
}

func writeWrapped(b *strings.Builder, heading, text string) {
	indent := display.Width(heading)
	lines := display.Wrap(text, max(explainWidth, indent+explainWidth/2), heading, strings.Repeat(" ", indent))
	b.WriteString(strings.Join(lines, "\n") + "\n")
}
