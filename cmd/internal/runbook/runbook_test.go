// SPDX-License-Identifier: Apache-2.0

package runbook_test

import (
	"bytes"
	"flag"
	"os"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/metehq/mete/cmd/internal/runbook"
)

var update = flag.Bool("update", false, "copy the page from doc")

// The command has the page of the documentation, word for word.
func TestSamePage(t *testing.T) {
	want, err := os.ReadFile("../../../doc/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile("operations.txt", want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile("operations.txt")
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("operations.txt differs from doc/operations.md (%v); run go test ./internal/runbook -update", err)
	}
}

// Each alert of the example has a section, by its name.
func TestFind_EveryAlert(t *testing.T) {
	rules, err := os.ReadFile("../../../examples/monitoring/alerts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`alert: (\w+)`).FindAllSubmatch(rules, -1)
	if len(found) < 20 {
		t.Fatalf("%d alerts, want all of them", len(found))
	}
	for _, m := range found {
		s, ok := runbook.Find(string(m[1]))
		if !ok || !strings.Contains(s.Text, string(m[1])) || strings.Contains(s.Text, "](") {
			t.Errorf("%s: %t, %q", m[1], ok, s.Text)
		}
		if again, ok := runbook.Find(strings.ToUpper(s.Name)); !ok || again.Text != s.Text {
			t.Errorf("%s: not found by the name %q", m[1], s.Name)
		}
	}
	if _, ok := runbook.Find("MeteNothing"); ok {
		t.Error("found a section of no alert")
	}
}

// The first screen has the five emergencies, in lines that fit a terminal.
func TestOverview(t *testing.T) {
	text := runbook.Overview()
	for _, want := range []string{"The store is down", "Everything is denied", "One client is denied", "An attack", "A bad policy", "Do not restart"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	for _, s := range append(runbook.Sections(), runbook.Section{Text: text}) {
		if strings.Contains(s.Text, ".*") || strings.Contains(s.Text, "**") {
			t.Errorf("Markdown in\n%s", s.Text)
		}
		for line := range strings.SplitSeq(s.Text, "\n") {
			if utf8.RuneCountInString(line) > 80 && !strings.HasPrefix(line, "    ") {
				t.Errorf("too long for a terminal: %s", line)
			}
		}
	}
}
