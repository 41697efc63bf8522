// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/metehq/mete/bench/contest"
	"github.com/metehq/mete/bench/report"
)

// TestRun starts everything there is, and measures it for as short as wrk can.
func TestRun(t *testing.T) {
	var out, progress strings.Builder
	if err := run(t.Context(), []string{"-rounds", "1", "-callers", "1", "-json"}, &out, &progress); err != nil {
		t.Fatalf("run: %v\n%s\n%s", err, &progress, &out)
	}
	var got struct {
		Results []contest.Result
		Targets []contest.Verdict
	}
	if err := json.Unmarshal([]byte(out.String()), &got); err != nil {
		t.Fatalf("output %q: %v", &out, err)
	}
	want := map[string]int{"take": 2, "batch": 2, "proxy": 2, "gateway": 3, "paced": 3}
	for _, r := range got.Results {
		if want[r.Scenario]--; r.Takes == nil || r.Takes.Median <= 0 || r.P99.Median < r.P50.Median {
			t.Errorf("%s, %s: a figure is missing: %+v", r.Scenario, r.Subject, r)
		}
	}
	for scenario, missing := range want {
		if missing != 0 {
			t.Errorf("%s: %d rows are missing:\n%s", scenario, missing, &out)
		}
	}
	if len(got.Targets) != 4 { // two of the proxy, and of two that ask
		t.Errorf("%d verdicts with 1 caller, want 4: %+v", len(got.Targets), got.Targets)
	}
}

func TestRunRefusesBadFlags(t *testing.T) {
	for _, args := range [][]string{
		{"-rounds", "0"}, {"-time", "0s"}, {"-time", "1h"}, {"-time", "1500ms"}, {"-only", "("}, {"-only", "nothing/at/all"}, {"take"}, {"-callers", "0"},
	} {
		var out strings.Builder
		if err := run(t.Context(), args, &out, io.Discard); err == nil || out.Len() > 0 {
			t.Errorf("run(%q) = %v and printed %q, want an error and nothing", args, err, &out)
		}
	}
}

func TestParse(t *testing.T) {
	good := "Running 1s test\n\nresult requests=7 elapsed=1000000 p50=12 p99=345 failed=0 refused=0\n"
	want := wrkFigures{7, time.Second, 12 * time.Microsecond, 345 * time.Microsecond}
	if got, err := parse(good); err != nil || got != want {
		t.Errorf("parse(%q) = %+v, %v; want %+v", good, got, err, want)
	}
	for _, bad := range []string{
		"", "Running 1s test\n", strings.Replace(good, "requests=7", "requests=0", 1),
		strings.Replace(good, "failed=0", "failed=1", 1), strings.Replace(good, "refused=0", "refused=1", 1),
	} {
		if got, err := parse(bad); err == nil {
			t.Errorf("parse(%q) = %+v, want an error", bad, got)
		}
	}
}

// Recorded rivals are scaled by the speed of this machine.
func TestRecorded(t *testing.T) {
	at := func(scenario, subject string, callers int, takes float64) contest.Result {
		one := func() *report.Stat { return report.NewStat([]float64{takes}) }
		return contest.Result{Scenario: scenario, Subject: subject, Callers: callers, Takes: one(), P50: one(), P99: one()}
	}
	got := recordedResults([]contest.Result{
		at("take", plain, 64, recordedPlain/2), at("take", mete, 64, 40_000), at("take", mete, 1, 9_000), at("proxy", mete, 64, 9_000)})
	if len(got) != 2 || got[0].Subject != gubernator || got[0].Takes.Median != 19_000 ||
		got[1].Subject != gubernatorScaled || got[1].Takes.Median != 9_500 || got[1].P50.Median != float64(2*3130*time.Microsecond) {
		t.Errorf("recorded: %+v", got)
	}
	if got := recordedResults([]contest.Result{at("batch", mete, 64, 700_000)}); len(got) != 1 || got[0].Takes.Median != 175_000 {
		t.Errorf("without bare net/http: %+v, want what was recorded alone", got)
	}
}
