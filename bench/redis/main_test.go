// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"io"
	"strings"
	"testing"

	"github.com/metehq/mete/bench/contest"
	"github.com/metehq/mete/bench/subject/inredis"
)

func TestRunPrintsEverySubject(t *testing.T) {
	var out, progress strings.Builder
	err := run(t.Context(), []string{"-rounds", "2", "-time", "20ms", "-callers", "2", "-only", "^(hot|deny)/"}, &out, &progress)
	if err != nil {
		t.Fatalf("run: %v\n%s\n%s", err, &progress, &out)
	}
	hot, deny, _ := strings.Cut(out.String(), "(`deny`)")
	for _, s := range inredis.All {
		if want := "| " + s.Name + " "; !strings.Contains(hot, want) || strings.Contains(deny, want) != (s.Kind == inredis.Exact) {
			t.Errorf("%s is missing, or has a row where it has no place:\n%s", s.Name, &out)
		}
	}
	if strings.Contains(out.String(), "(`keys`)") || strings.Contains(out.String(), "left out") {
		t.Errorf("the output has what was not asked for, or lacks what was:\n%s", &out)
	}
}

func TestRunPrintsJSON(t *testing.T) {
	var out strings.Builder
	args := []string{"-rounds", "1", "-time", "20ms", "-callers", "3", "-only", "^three/3/script", "-json"}
	if err := run(t.Context(), args, &out, io.Discard); err != nil {
		t.Fatalf("run: %v", err)
	}
	var got struct{ Results []contest.Result }
	if err := json.Unmarshal([]byte(out.String()), &got); err != nil {
		t.Fatalf("output %q: %v", &out, err)
	}
	if len(got.Results) != 1 {
		t.Fatalf("%d results, want 1: %s", len(got.Results), &out)
	}
	r := got.Results[0]
	if r.Callers != 3 || r.Takes == nil || r.Takes.Median <= 0 || r.P99.Median < r.P50.Median || r.CPU.Median <= 0 || r.Ratios != nil {
		t.Errorf("the output lacks a figure, or has a ratio without redis_rate: %s", &out)
	}
}

func TestRunRefusesBadFlags(t *testing.T) {
	for _, args := range [][]string{
		{"-rounds", "0"}, {"-time", "0s"}, {"-time", "1h"}, {"-only", "("}, {"-only", "nothing/at/all"}, {"hot"}, {"-unknown"},
		{"-callers", ""}, {"-callers", "0"}, {"-callers", "1,x"}, {"-callers", "1000000"},
		{"-server", "no-such-program"}, {"-server", "false"},
	} {
		var out strings.Builder
		if err := run(t.Context(), args, &out, io.Discard); err == nil || out.Len() > 0 {
			t.Errorf("run(%q) = %v and printed %q, want an error and nothing", args, err, &out)
		}
	}
}
