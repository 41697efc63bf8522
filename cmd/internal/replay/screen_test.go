// SPDX-License-Identifier: Apache-2.0

package replay_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/metehq/mete/cmd/internal/display"
	"github.com/metehq/mete/cmd/internal/replay"
)

// colored matches the color sequences in a report.
var colored = regexp.MustCompile(`\x1b\[\d*m`)

// On a terminal no line is too wide, and no count is omitted.
func TestReport_Fits(t *testing.T) {
	text := randomTrace(3000, 5)
	wide := reportOn(t, newPolicy, text, func(r *replay.Report) { r.ShowKeys = true })
	for _, columns := range []int{40, 60, 80, 120} {
		got := reportOn(t, newPolicy, text, func(r *replay.Report) {
			r.ShowKeys = true
			r.Policy, r.Trace = strings.Repeat("long/", 40), "a\x1b[2Jb"
			r.Screen = replay.Screen{Columns: columns, Fit: true}
		})
		for line := range strings.Lines(strings.TrimSuffix(got, "\n")) {
			if strings.HasPrefix(line, "trace ") || strings.Contains(line, " rules") {
				continue // names of files, which the terminal breaks
			}
			if n := display.Width(strings.TrimSuffix(line, "\n")); n > columns {
				t.Errorf("%d columns: %d are taken by\n%s", columns, n, line)
			}
		}
		if !strings.Contains(got, "REQUESTS") || !strings.Contains(got, "OVER TIME") || strings.Contains(got, "\x1b") {
			t.Errorf("%d columns: got\n%s", columns, got)
		}
	}
	if wide == "" || strings.Contains(wide, "\x1b") {
		t.Errorf("in a file: got\n%s", wide)
	}
}

// A report with colors differs only by its colors.
func TestReport_Colour(t *testing.T) {
	text := randomTrace(3000, 6)
	plain := reportOn(t, newPolicy, text, func(*replay.Report) {})
	got := reportOn(t, newPolicy, text, func(r *replay.Report) { r.Screen.Color = true })
	if colored.ReplaceAllString(got, "") != plain || got == plain {
		t.Errorf("got\n%q\nwant, with colours,\n%s", got, plain)
	}
	for _, want := range []string{"\x1b[31m█", "\x1b[1mRULE "} {
		if !strings.Contains(got, want) {
			t.Errorf("the report has no %q:\n%q", want, got)
		}
	}
}

// A report of nothing but one instant has no chart.
func TestReport_OneInstant(t *testing.T) {
	got := reportOn(t, reportPolicy, `{"at":5,"path":"/x"}`+"\n"+`{"at":5,"path":"/x"}`, func(*replay.Report) {})
	if strings.Contains(got, "OVER TIME") || !strings.Contains(got, "everyone") {
		t.Errorf("got\n%s", got)
	}
	if page := htmlReport(t, reportPolicy, `{"at":5,"path":"/x"}`, nil); strings.Contains(page, "<figure") || !strings.Contains(page, ">everyone<") {
		t.Errorf("got\n%s", blocks.ReplaceAllString(page, "…"))
	}
}
