// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/metehq/mete/bench/report"
	"github.com/metehq/mete/bench/subject"
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
	var got struct{ Results []result }
	if err := json.Unmarshal([]byte(out.String()), &got); err != nil {
		t.Fatalf("output %q: %v", &out, err)
	}
	if len(got.Results) != 1 {
		t.Fatalf("%d results, want 1: %s", len(got.Results), &out)
	}
	r := got.Results[0]
	if r.Callers != 3 || r.Takes == nil || r.Takes.Median <= 0 || r.P99.Median < r.P50.Median || r.CPU.Median <= 0 || r.Ratio != 0 {
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

// TestNoRowForLimitersThatFail measures one that answers wrongly, one that fails
// on its way, and one that cannot begin.
func TestNoRowForLimitersThatFail(t *testing.T) {
	srv, err := startServer(t.Context(), "redis-server")
	if err != nil {
		t.Fatal(err)
	}
	defer srv.stop()
	broken := errors.New("broken")
	taking := func(name string, take inredis.Take) inredis.Subject {
		return inredis.Subject{Name: name, New: func(string, subject.Quota) (inredis.Limiter, error) {
			return inredis.Limiter{Caller: func() inredis.Take { return take }, Close: func() {}}, nil
		}}
	}
	count := 0
	at := cell{scenario: scenarios[0], callers: 1, subjects: []inredis.Subject{
		taking("denying", func([]string) (bool, error) { return false, nil }),
		taking("failing", func([]string) (bool, error) {
			if count++; count > 10 {
				return true, broken
			}
			return true, nil
		}),
		{Name: "closed", New: func(string, subject.Quota) (inredis.Limiter, error) { return inredis.Limiter{}, broken }},
		taking("sound", func([]string) (bool, error) { return true, nil }),
	}}
	results, err := compare(t.Context(), srv, config{rounds: 2, time: time.Millisecond}, []cell{at}, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"wrong answer", "broken", "broken", ""} {
		r := results[i]
		if !strings.Contains(r.Failed, want) || (r.Takes != nil) != (want == "") {
			t.Errorf("%s: %+v, want it to fail with %q", r.Subject, r, want)
		}
	}
	var out strings.Builder
	writeScenario(&out, at.scenario, results)
	for _, r := range results {
		if got := strings.Contains(out.String(), "| "+r.Subject+" "); got != (r.Failed == "") {
			t.Errorf("%s has a row: %v, failed: %q\n%s", r.Subject, got, r.Failed, &out)
		}
	}
}

func TestJudge(t *testing.T) {
	at := func(subject string, takes, p99 float64) result {
		return result{Scenario: "keys", Callers: 64, Subject: subject,
			Takes: report.NewStat([]float64{takes}), P99: report.NewStat([]float64{p99})}
	}
	results := []result{at(inredis.MeteStore, 300, 40), at(inredis.MeteLimiter, 299, 41), at(inredis.RedisRate, 100, 100),
		{Scenario: "keys", Callers: 64, Subject: inredis.Window, Failed: "broken"}}
	got := map[string]bool{}
	for _, v := range judge(results) {
		if v.Rival != inredis.RedisRate || v.Callers != 64 {
			t.Errorf("a verdict on what was not measured: %+v", v)
		}
		got[v.Subject+", "+v.Figure] = v.Met
	}
	want := map[string]bool{
		inredis.MeteStore + ", takes/s": true, inredis.MeteStore + ", p99": true,
		inredis.MeteLimiter + ", takes/s": false, inredis.MeteLimiter + ", p99": false,
	}
	if len(got) != len(want) {
		t.Errorf("judge: met = %v, want %v", got, want)
	}
	for what, met := range want {
		if got[what] != met {
			t.Errorf("%s: met = %v, want %v", what, got[what], met)
		}
	}
}
