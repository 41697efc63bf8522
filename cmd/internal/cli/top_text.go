// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/metehq/mete/api"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/cmd/internal/display"
	"github.com/metehq/mete/cmd/internal/prose"
)

// maxRuleColumns is how wide the column of rules may be, and maxValueColumns one
// value in a key: the one or the other may be long, and the rest is to be seen.
const (
	maxRuleColumns  = 24
	maxValueColumns = 48
)

// topText is a list where it is not drawn on a terminal.
func topText(top *api.Top, limit int) string {
	var b strings.Builder
	b.WriteString(topTotal(top) + "\n")
	if len(top.Keys) > 0 {
		b.WriteByte('\n')
		for _, line := range topTable(top, 0, limit, 0) {
			b.WriteString(line + "\n")
		}
	}
	b.WriteString("\n" + topRest(top, limit, limit) + "\n")
	return b.String()
}

// topWords are how the kinds are said.
var topWords = map[string]struct{ total, heading string }{
	"denied": {"denied", ">DENIED"},
	"shadow": {"would be denied, but for the shadow of a rule,", ">SHADOW"},
	"near":   {"admitted near a limit", ">NEAR"},
}

// topTotal says how many requests it is about.
func topTotal(top *api.Top) string {
	covered := top.At.Sub(top.Since)
	text := topWords[top.Kind].total + " " + prose.Count(top.Total, "time") + " in the last " + prose.Duration(max(covered.Round(time.Second), time.Second))
	if top.Total > 0 {
		text += fmt.Sprintf(" (%s/s), by %s", perSecond(top.Total, covered), prose.Count(top.RuleCount, "rule"))
	}
	if top.Masked {
		text += "; keys are masked: to see them takes the role operate"
	}
	return text
}

// topRest says what is not shown where the first n keys are, of as many as were asked
// for.
func topRest(top *api.Top, n, asked int) string {
	most := uint64(0)
	for _, r := range top.Rules {
		most = max(most, r.Unlisted)
	}
	if len(top.Rules) < top.RuleCount { // of which each has at most as many as the last one here
		most = max(most, top.Rules[len(top.Rules)-1].Total)
	}
	switch n = min(n, len(top.Keys)); {
	case n < len(top.Keys):
		most = max(most, top.Keys[n].Count)
	case n > 0 && n >= asked:
		most = max(most, top.Keys[n-1].Count)
	}
	var text string
	switch {
	case most > 0:
		text = fmt.Sprintf("no other key has more than %d", most)
	case top.Total == 0:
		text = "there is no key"
	default:
		text = "there are no other keys"
	}
	if top.Dropped > 0 {
		text += fmt.Sprintf("; %d more were not counted, of whatever key", top.Dropped)
	}
	return text
}

// countText is a count, or between which numbers it is.
func countText(k *api.TopKey) string {
	if k.Error > 0 {
		return fmt.Sprintf("%d-%d", k.Count-min(k.Error, k.Count), k.Count)
	}
	return strconv.FormatUint(k.Count, 10)
}

// perSecond is a rate, with three digits where it has a fraction.
func perSecond(n uint64, d time.Duration) string {
	rate := float64(n) / max(d, time.Second).Seconds()
	switch {
	case rate >= 100:
		return strconv.FormatFloat(rate, 'f', 0, 64)
	case rate >= 10:
		return strconv.FormatFloat(rate, 'f', 1, 64)
	}
	return strconv.FormatFloat(rate, 'f', 2, 64)
}

// shareText is a key's share of what its rule has.
func shareText(k *api.TopKey, total uint64) string {
	if total == 0 {
		return "-"
	}
	part := 100 * float64(min(k.Count, total)) / float64(total)
	if part < 1 {
		return "<1%"
	}
	return strconv.FormatFloat(part, 'f', 0, 64) + "%"
}

// sinceText is how long before now something was.
func sinceText(now, t time.Time) string {
	d := max(now.Sub(t), 0)
	if d < time.Second {
		return "now"
	}
	step := time.Second
	if d >= 10*time.Minute {
		step = time.Minute
	}
	return prose.Duration(roughly(d.Truncate(step)))
}

func waitText(d time.Duration) string {
	switch {
	case d <= 0:
		return "now"
	case d == bucket.Never:
		return "never"
	}
	return prose.Duration(roughlyUp(d))
}

// roughlyUp is like roughly, and never too short.
func roughlyUp(d time.Duration) time.Duration {
	for _, step := range []time.Duration{time.Minute, time.Hour} {
		if d >= 48*step {
			d = (d + step - 1).Truncate(step)
		}
	}
	return d
}

// keyText is what a key is made of, as --match takes it.
func keyText(k *api.TopKey, masked bool) string {
	var parts []string
	if masked {
		parts = append(parts, "~"+k.Mask)
	}
	for _, p := range k.Parts {
		value := display.Cut(display.Inert(p.Value), maxValueColumns)
		if strings.ContainsAny(value, " '\"") || value == "" {
			value = `"` + strings.ReplaceAll(value, `"`, `\"`) + `"`
		}
		parts = append(parts, display.Inert(p.Name)+"="+value)
	}
	if len(k.Parts) == 0 {
		parts = append(parts, "(everyone)")
	}
	if k.Cut {
		parts = append(parts, "(cut)")
	}
	return strings.Join(parts, " ")
}
