// SPDX-License-Identifier: Apache-2.0

package contest_test

import (
	"context"
	"errors"
	"flag"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/metehq/mete/bench/contest"
	"github.com/metehq/mete/bench/report"
	"github.com/metehq/mete/bench/subject"
	"github.com/metehq/mete/bench/subject/remote"
)

var hot = contest.Scenario{Name: "hot", Title: "One hot key", Quota: subject.Allow, Keys: 1, Calls: 1}

func parse(t *testing.T, args ...string) contest.Config {
	t.Helper()
	flags := flag.NewFlagSet("contest", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	c, err := contest.Parse(flags, args)
	if err != nil {
		t.Fatalf("Parse(%q): %v", args, err)
	}
	return c
}

// taking is an entrant that takes by a function.
func taking(name string, take remote.Take) contest.Entrant {
	loop := contest.Loop{Open: func(context.Context) (remote.Limiter, error) {
		return remote.Limiter{Caller: func() remote.Take { return take }, Close: func() {}}, nil
	}}
	return contest.Entrant{Name: name, Turn: loop.Turn}
}

func sound([]string) (bool, error) { return true, nil }

func ready(context.Context) error { return nil }

// TestNoRowForLimitersThatFail measures one that answers wrongly, one that fails
// on its way, and some that cannot begin.
func TestNoRowForLimitersThatFail(t *testing.T) {
	broken := errors.New("broken")
	fail := func(context.Context) error { return broken }
	closed := contest.Loop{Open: func(ctx context.Context) (remote.Limiter, error) { return remote.Limiter{}, fail(ctx) }}
	unsettled := contest.Loop{Settle: fail, Open: func(context.Context) (remote.Limiter, error) {
		return remote.Limiter{Caller: func() remote.Take { return sound }, Close: func() {}}, nil
	}}
	count := 0
	events := []contest.Event{{Scenario: hot, Entrants: []contest.Entrant{
		taking("denying", func([]string) (bool, error) { return false, nil }),
		taking("failing", func([]string) (bool, error) {
			if count++; count > 10 {
				return true, broken
			}
			return true, nil
		}),
		{Name: "closed", Turn: closed.Turn},
		{Name: "unsettled", Turn: unsettled.Turn},
		taking("sound", sound),
	}}}
	c := parse(t, "-rounds", "2", "-time", "1ms", "-callers", "1")
	cells, err := c.Cells(events)
	if err != nil {
		t.Fatal(err)
	}
	results, err := c.Run(t.Context(), cells, ready, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"wrong answer", "broken", "broken", "broken", ""} {
		r := results[i]
		if !strings.Contains(r.Failed, want) || (r.Takes != nil) != (want == "") {
			t.Errorf("%s: %+v, want it to fail with %q", r.Subject, r, want)
		}
	}
	var out strings.Builder
	if err := contest.NewOutcome("", events, results, nil, nil).Write(&out, false); err == nil {
		t.Error("no error where rows are left out")
	}
	for _, r := range results {
		if got := strings.Contains(out.String(), "| "+r.Subject+" "); got != (r.Failed == "") {
			t.Errorf("%s has a row: %v, failed: %q\n%s", r.Subject, got, r.Failed, &out)
		}
	}
}

func TestRunEndsWithItsContextOrWithoutAServer(t *testing.T) {
	c := parse(t, "-rounds", "1", "-time", "1ms", "-callers", "1")
	cells, err := c.Cells([]contest.Event{{Scenario: hot, Entrants: []contest.Entrant{taking("sound", sound)}}})
	if err != nil {
		t.Fatal(err)
	}
	gone := errors.New("gone")
	if _, err := c.Run(t.Context(), cells, func(context.Context) error { return gone }, io.Discard); !errors.Is(err, gone) {
		t.Errorf("Run without a server: %v, want %v", err, gone)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.Run(ctx, cells, ready, io.Discard); !errors.Is(err, context.Canceled) {
		t.Errorf("Run without time: %v, want %v", err, context.Canceled)
	}
}

func TestEveryoneTakesTurns(t *testing.T) {
	var turns []string
	entrant := func(name string) contest.Entrant {
		return contest.Entrant{Name: name, Turn: func(_ context.Context, task contest.Task) (contest.Sample, error) {
			turns = append(turns, name)
			return contest.Sample{Takes: float64(task.Callers)}, nil
		}}
	}
	c := parse(t, "-rounds", "2", "-callers", "3,5", "-only", "/5/[abc]")
	cells, err := c.Cells([]contest.Event{{Scenario: hot, Entrants: []contest.Entrant{entrant("a"), entrant("b"), entrant("x"), entrant("c")}}})
	if err != nil {
		t.Fatal(err)
	}
	results, err := c.Run(t.Context(), cells, ready, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := strings.Join(turns, ""), "abcbca"; got != want {
		t.Errorf("turns: %q, want %q", got, want)
	}
	if len(results) != 3 || results[2].Subject != "c" || results[2].Takes.Median != 5 {
		t.Errorf("results: %+v", results)
	}
}

// TestLoopMeasures counts the calls of the loop: each key once before it settles, and
// then the counted calls and the warm-up.
func TestLoopMeasures(t *testing.T) {
	var used time.Duration
	var before, after atomic.Int64
	var settled atomic.Bool
	loop := contest.Loop{
		Open: func(context.Context) (remote.Limiter, error) {
			take := func([]string) (bool, error) {
				if settled.Load() {
					after.Add(1)
				} else {
					before.Add(1)
				}
				return true, nil
			}
			return remote.Limiter{Caller: func() remote.Take { return take }, Close: func() {}}, nil
		},
		Settle: func(context.Context) error { settled.Store(true); return nil },
		CPU:    func(context.Context) (time.Duration, error) { used += time.Hour; return used, nil },
	}
	c := parse(t, "-rounds", "1", "-time", "10ms", "-callers", "3")
	keys := contest.Scenario{Name: "keys", Quota: subject.Allow, Keys: 100, Calls: 1000}
	cells, err := c.Cells([]contest.Event{{Scenario: keys, Entrants: []contest.Entrant{{Name: "counting", Turn: loop.Turn}}}})
	if err != nil {
		t.Fatal(err)
	}
	results, err := c.Run(t.Context(), cells, ready, io.Discard)
	if err != nil || results[0].Failed != "" {
		t.Fatalf("Run: %+v, %v", results, err)
	}
	if got := before.Load(); got != 101 {
		t.Errorf("%d takes before it settled, want each of 100 keys and one more", got)
	}
	r, most := results[0], float64(after.Load())/0.01
	if r.Takes.Median <= 0 || r.Takes.Median > most || r.P99.Median < r.P50.Median || r.CPU == nil || r.CPU.Median <= 0 {
		t.Errorf("%+v of %v takes after it settled", r, after.Load())
	}
}

func TestJudge(t *testing.T) {
	at := func(subject string, takes, p99 float64) contest.Result {
		return contest.Result{Scenario: "keys", Callers: 64, Subject: subject,
			Takes: report.NewStat([]float64{takes}), P99: report.NewStat([]float64{p99})}
	}
	both := []string{"store", "limiter"}
	targets := []contest.Target{
		{Scenario: "keys", Callers: 64, Figure: contest.Takes, Subjects: both, Rival: "rival", Factor: 3},
		{Scenario: "keys", Callers: 64, Figure: contest.P99, Subjects: both, Rival: "rival", Most: 0.4},
		{Scenario: "keys", Callers: 64, Figure: contest.Takes, Subjects: both, Rival: "broken one", Factor: 1},
		{Scenario: "keys", Callers: 16, Figure: contest.Takes, Subjects: both, Rival: "rival", Factor: 1},
	}
	results := []contest.Result{at("store", 300, 40), at("limiter", 299, 41), at("rival", 100, 100),
		{Scenario: "keys", Callers: 64, Subject: "broken one", Failed: "broken"}}
	got := map[string]bool{}
	for _, v := range contest.Judge(targets, results) {
		if v.Rival != "rival" || v.Callers != 64 {
			t.Errorf("a verdict on what was not measured: %+v", v)
		}
		got[v.Subject+", "+string(v.Figure)] = v.Met
	}
	want := map[string]bool{"store, takes/s": true, "store, p99": true, "limiter, takes/s": false, "limiter, p99": false}
	if len(got) != len(want) {
		t.Errorf("Judge: met = %v, want %v", got, want)
	}
	for what, met := range want {
		if got[what] != met {
			t.Errorf("%s: met = %v, want %v", what, got[what], met)
		}
	}
}

func TestJudge_TimesThatAreAdded(t *testing.T) {
	at := func(subject string, p50 time.Duration) contest.Result {
		return contest.Result{Scenario: "keys", Callers: 1, Subject: subject, P50: report.NewStat([]float64{float64(p50)})}
	}
	targets := []contest.Target{{Scenario: "keys", Callers: 1, Figure: contest.P50, Subjects: []string{"near", "far"}, Rival: "rival", Added: 100 * time.Microsecond}}
	verdicts := contest.Judge(targets, []contest.Result{
		at("near", 150*time.Microsecond), at("far", 151*time.Microsecond), at("rival", 50*time.Microsecond)})
	if len(verdicts) != 2 || !verdicts[0].Met || verdicts[0].More != 100*time.Microsecond || verdicts[1].Met {
		t.Errorf("Judge: %+v, want 100 µs more to be met, and 101 µs not", verdicts)
	}
	var out strings.Builder
	if err := (contest.Outcome{Verdicts: verdicts}).Write(&out, false); err != nil || !strings.Contains(out.String(), "| +101 µs | ≤ +100 µs | **no** |") {
		t.Errorf("Write: %v\n%s", err, &out)
	}
}

func TestParseRefusesBadFlags(t *testing.T) {
	for _, args := range [][]string{
		{"-rounds", "0"}, {"-time", "0s"}, {"-time", "1h"}, {"-only", "("}, {"hot"}, {"-unknown"},
		{"-callers", ""}, {"-callers", "0"}, {"-callers", "1,x"}, {"-callers", "1000000"},
	} {
		flags := flag.NewFlagSet("contest", flag.ContinueOnError)
		flags.SetOutput(io.Discard)
		if c, err := contest.Parse(flags, args); err == nil {
			t.Errorf("Parse(%q) = %+v, want an error", args, c)
		}
	}
	if _, err := parse(t, "-only", "nothing/at/all").Cells([]contest.Event{{Scenario: hot, Entrants: []contest.Entrant{taking("sound", sound)}}}); err == nil {
		t.Error("Cells: no error where -only matches nothing")
	}
}
