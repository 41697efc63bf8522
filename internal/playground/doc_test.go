// SPDX-License-Identifier: Apache-2.0

package playground_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/metehq/mete/internal/playground"
)

var update = flag.Bool("update", false, "update the table of examples in doc/playground.md")

const (
	page       = "../../doc/playground.md"
	tableBegin = "-update -->\n"
	tableEnd   = "<!-- end of examples -->"
)

// The table of examples has the figures of the engine.
func TestDoc_Examples(t *testing.T) {
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(text), tableBegin)
	got, after, ok2 := strings.Cut(rest, tableEnd)
	if !ok || !ok2 {
		t.Fatalf("%s has no markers around the table of examples", page)
	}
	want := examples(t)
	if *update {
		if err := os.WriteFile(page, []byte(before+tableBegin+want+tableEnd+after), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if got != want {
		t.Errorf("%s is out of date: run go test ./internal/playground -run TestDoc -update", page)
	}
}

func examples(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	source := "–"
	for _, p := range playground.Presets() {
		from := ""
		if p.Source != nil {
			from = p.Source.Title
		}
		if from != source {
			source = from
			heading := "Learn the algorithms"
			if from != "" {
				heading = from
			}
			fmt.Fprintf(&b, "\n**%s**\n\n| Example | Limit | Allowed | First denial |\n|---|---|---|---|\n", heading)
		}
		r, err := playground.Play(t.Context(), p.Input)
		if err != nil {
			t.Fatalf("%s: %v", p.ID, err)
		}
		for i, l := range r.Lanes {
			first, title := "none", ""
			if f := l.FirstDenial; f != nil {
				first = fmt.Sprintf("%d, at %s s", f.Request, show(t, f.At))
			}
			if i == 0 {
				title = fmt.Sprintf("[%s](http://127.0.0.1:8081/dashboard/#/playground?preset=%s)", p.Title, p.ID)
			}
			fmt.Fprintf(&b, "| %s | %s | %d of %d | %s |\n", title, l.Name, l.Totals.Allowed, l.Totals.Sent, first)
		}
	}
	return b.String() + "\n"
}

// The page states the bounds of the package.
func TestDoc_Bounds(t *testing.T) {
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	for what, bound := range map[string]int{
		"limits side by side": playground.MaxLanes, "phases": playground.MaxPhases, "requests sent by hand": playground.MaxHand,
		"requests of a limit, retries included": playground.MaxRequests / 1000,
	} {
		if row := fmt.Sprintf("\n| %s | %d", what, bound); !strings.Contains(string(text), row) {
			t.Errorf("%s does not say %q", page, row)
		}
	}
	if !strings.Contains(string(text), fmt.Sprintf("at %d instants", playground.Levels)) || playground.MaxSeconds != 86400 {
		t.Errorf("%s has other bounds than the package", page)
	}
}
