// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"io"
	"regexp"
	"strings"
	"testing"

	"github.com/metehq/mete/bench/contest"
	"github.com/metehq/mete/bench/subject/inpostgres"
)

func TestRunPrintsEverySubject(t *testing.T) {
	var out, progress strings.Builder
	err := run(t.Context(), []string{"-rounds", "1", "-time", "20ms", "-callers", "2", "-only", "^(hot|deny)/2/(mete|classic|single)"}, &out, &progress)
	if err != nil {
		t.Fatalf("run: %v\n%s\n%s", err, &progress, &out)
	}
	hot, deny, _ := strings.Cut(out.String(), "(`deny`)")
	for _, s := range inpostgres.All {
		if want := "| " + s.Name + " "; !strings.Contains(hot, want) || !strings.Contains(deny, want) {
			t.Errorf("%s is missing:\n%s", s.Name, &out)
		}
	}
	if strings.Contains(out.String(), "logged`)") || strings.Contains(out.String(), "left out") {
		t.Errorf("the output has what was not asked for, or lacks what was:\n%s", &out)
	}
}

func TestRunPrintsJSON(t *testing.T) {
	var out strings.Builder
	args := []string{"-rounds", "1", "-time", "20ms", "-callers", "3", "-only", "^hot-logged/3/(single|classic)", "-json"}
	if err := run(t.Context(), args, &out, io.Discard); err != nil {
		t.Fatalf("run: %v", err)
	}
	var got contest.Outcome
	if err := json.Unmarshal([]byte(out.String()), &got); err != nil {
		t.Fatalf("output %q: %v", &out, err)
	}
	if len(got.Results) != 2 || !strings.Contains(got.Conditions, "PostgreSQL 1") {
		t.Fatalf("%d results, want 2, and the version: %s", len(got.Results), &out)
	}
	single := got.Results[1]
	if single.Subject != inpostgres.Single || single.Callers != 3 || single.Takes.Median <= 0 || single.P99.Median < single.P50.Median ||
		single.Ratios[inpostgres.Classic] <= 0 || single.Ratios[inpostgres.Single] != 1 {
		t.Errorf("the output lacks a figure: %s", &out)
	}
}

func TestRunRefusesBadFlags(t *testing.T) {
	for _, args := range [][]string{
		{"-rounds", "0"}, {"-only", "nothing/at/all"}, {"hot"}, {"-unknown"},
		{"-connections", "0"}, {"-connections", "100"}, {"-programs", "no/such/directory"}, {"-dir", "no/such/directory"},
	} {
		var out strings.Builder
		if err := run(t.Context(), args, &out, io.Discard); err == nil || out.Len() > 0 {
			t.Errorf("run(%q) = %v and printed %q, want an error and nothing", args, err, &out)
		}
	}
}

// TestTargetsSpeakOfWhatIsMeasured would find a name misspelled.
func TestTargetsSpeakOfWhatIsMeasured(t *testing.T) {
	cells, err := contest.Config{Callers: []int{1, 16, 64, 256}, Only: regexp.MustCompile("")}.Cells(new(server).events(new(flexible)))
	if err != nil {
		t.Fatal(err)
	}
	entrants := map[string]bool{}
	for _, cell := range cells {
		for _, e := range cell.Entrants {
			entrants[cell.String()+"/"+e.Name] = true
		}
	}
	for _, target := range targets {
		at := contest.Cell{Scenario: contest.Scenario{Name: target.Scenario}, Callers: target.Callers}.String() + "/"
		for _, name := range append([]string{target.Rival}, target.Subjects...) {
			if !entrants[at+name] {
				t.Errorf("a target speaks of %s, which nobody measures", at+name)
			}
		}
	}
}
