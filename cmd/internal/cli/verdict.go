// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"io"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/api"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/prose"
	"github.com/metehq/mete/internal/visible"
)

// printDecision writes d as text or as one line of JSON.
func printDecision(w io.Writer, format string, d api.Decision) error {
	if format == "json" {
		return writeJSON(w, d)
	}
	fmt.Fprintln(w, decisionText(d))
	width := 0
	for _, l := range d.Limits {
		width = max(width, len(l.Limit))
	}
	for _, l := range d.Limits {
		fmt.Fprintf(w, "  %-*s  %d left%s%s\n", width, l.Limit, l.Remaining, debtText(l), refillText(l))
	}
	if d.Slot != "" {
		fmt.Fprintf(w, "  slot %s ends in %s\n", visible.Text(d.Slot), prose.Duration(d.Lease.Duration()))
	}
	return nil
}

// decisionText describes the decision in one line.
func decisionText(d api.Decision) string {
	degraded := ""
	switch {
	case d.Failure != "":
		degraded = " (degraded: the store could not answer: " + d.Failure + ")"
	case d.Degraded:
		degraded = " (degraded: the store could not answer)"
	}
	wait := d.RetryAfter.Duration()
	switch {
	case d.Allowed && d.Override != "":
		return "allowed by override " + d.Override + degraded
	case d.Reason == mete.ReasonBlocked:
		return fmt.Sprintf("blocked by override %s; try again in %s", d.Override, prose.Duration(wait))
	case d.Allowed && len(d.Limits) == 0 && !d.Degraded:
		return "allowed: no rule applies, except in shadow mode"
	case d.Allowed && d.Wait > 0:
		return fmt.Sprintf("allowed in %s%s", prose.Duration(d.Wait.Duration()), degraded)
	case d.Allowed:
		return "allowed" + degraded
	case wait == bucket.Never:
		return fmt.Sprintf("denied by %s: %s; it can never be allowed%s", d.Rule, d.Reason, degraded)
	case wait > 0:
		return fmt.Sprintf("denied by %s: %s; try again in %s%s", d.Rule, d.Reason, prose.Duration(wait), degraded)
	}
	return fmt.Sprintf("denied by %s: %s%s", d.Rule, d.Reason, degraded)
}

func debtText(l api.Limit) string {
	if l.Owed == 0 {
		return ""
	}
	return ", " + l.Owed.String() + " owed"
}

func refillText(l api.Limit) string {
	switch d := l.FullAfter.Duration(); {
	case d == bucket.Never:
		return ""
	case d <= 0:
		return ", full"
	default:
		return ", full again in " + prose.Duration(max(d, time.Microsecond))
	}
}
