// SPDX-License-Identifier: Apache-2.0

package top

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/metehq/mete/api"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/cmd/internal/display"
	"github.com/metehq/mete/internal/prose"
)

// maxRuleColumns bounds the width of rules, and maxValueColumns the width of a value in a key.
const (
	maxRuleColumns  = 24
	maxValueColumns = 48
)

var kindWords = map[string]struct{ total, heading string }{
	"denied": {"denied", ">DENIED"},
	"shadow": {"would be denied by a rule in shadow mode", ">SHADOW"},
	"near":   {"admitted near a limit", ">NEAR"},
}

func totalText(top *api.Top) string {
	covered := top.At.Sub(top.Since)
	text := kindWords[top.Kind].total + " " + prose.Count(top.Total, "time") + " in the last " + prose.Duration(max(covered.Round(time.Second), time.Second))
	if top.Total > 0 {
		text += fmt.Sprintf(" (%s/s), by %s", perSecond(top.Total, covered), prose.Count(top.RuleCount, "rule"))
	}
	if top.Masked {
		text += "; keys are masked: use a token with the role operate to see them"
	}
	return text
}

// restText describes the keys that are not shown. n is the number of shown keys, and asked the number of requested
// keys.
func restText(top *api.Top, n, asked int) string {
	most := uint64(0)
	for _, r := range top.Rules {
		most = max(most, r.Unlisted)
	}
	if len(top.Rules) < top.RuleCount { // the other rules have at most as many
		most = max(most, top.Rules[len(top.Rules)-1].Total)
	}
	n = min(n, len(top.Keys))
	for _, k := range top.Keys[n:] {
		most = max(most, k.Count)
	}
	if n > 0 && n >= asked {
		most = max(most, top.Keys[n-1].Count)
	}
	text := "no other keys"
	switch {
	case most > 0:
		text = fmt.Sprintf("no other key has more than %d", most)
	case top.Total == 0:
		text = "no keys"
	}
	if top.Dropped > 0 {
		text += fmt.Sprintf("; %d more requests were not counted", top.Dropped)
	}
	return text
}

// countText formats a count, or a range for an estimate.
func countText(k *api.TopKey) string {
	if k.Error > 0 {
		return fmt.Sprintf("%d-%d", k.Count-min(k.Error, k.Count), k.Count)
	}
	return strconv.FormatUint(k.Count, 10)
}

// perSecond formats a rate. Rates with a fraction have three digits.
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

func sinceText(now, t time.Time) string {
	d := max(now.Sub(t), 0)
	if d < time.Second {
		return "now"
	}
	step := time.Second
	if d >= 10*time.Minute {
		step = time.Minute
	}
	return prose.Duration(prose.Roughly(d.Truncate(step)))
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

// roughlyUp rounds like [prose.Roughly], but never down.
func roughlyUp(d time.Duration) time.Duration {
	for _, step := range []time.Duration{time.Minute, time.Hour} {
		if d >= 48*step {
			d = (d + step - 1).Truncate(step)
		}
	}
	return d
}

// keyText formats the parts of a key in the syntax of --match.
func keyText(k *api.TopKey, masked bool) string {
	var parts []string
	if masked {
		parts = append(parts, "~"+k.Mask)
	}
	for _, p := range k.Parts {
		value := display.Cut(display.EscapeUnsafe(p.Value), maxValueColumns)
		if strings.ContainsAny(value, " '\"") || value == "" {
			value = `"` + strings.ReplaceAll(value, `"`, `\"`) + `"`
		}
		parts = append(parts, display.EscapeUnsafe(p.Name)+"="+value)
	}
	if len(k.Parts) == 0 {
		parts = append(parts, "(everyone)")
	}
	if k.Cut {
		parts = append(parts, "(cut)")
	}
	return strings.Join(parts, " ")
}
