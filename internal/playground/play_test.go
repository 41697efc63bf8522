// SPDX-License-Identifier: Apache-2.0

package playground_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/metehq/mete/api"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/playground"
)

// play runs an input in JSON, as the page sends it.
func play(t *testing.T, text string) *api.PlayResult {
	t.Helper()
	var in api.Play
	if err := json.Unmarshal([]byte(text), &in); err != nil {
		t.Fatal(err)
	}
	r, err := playground.Play(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// show encodes a value as the page receives it.
func show(t *testing.T, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// The worked example of doc/algorithm.md.
func TestPlay_WorkedExample(t *testing.T) {
	r := play(t, `{"lanes": [{"algorithm": "token_bucket", "tokens": 10, "per": "1s", "capacity": 50}],
		"traffic": {"phases": [{"shape": "steady", "rate": 60, "seconds": 1.1}]}}`)
	lane := r.Lanes[0]
	for i, want := range map[int]string{
		1:  "[0,1,0,49,0,50,49,1,0,1]",
		2:  "[0.016666,1,0,48,0,49.166,48.166,1,1,1]",
		51: "[0.833333,1,0,7,0,8.333,7.333,1,50,1]",
		59: "[0.966666,1,0,0,0,1.666,0.666,1,58,1]",
		60: "[0.983333,0,0.016667,0,0,0.833,0.833,1,59,1]",
		61: "[1,1,0,0,0,1,0,1,60,1]",
		62: "[1.016666,0,0.083334,0,0,0.166,0.166,1,61,1]",
	} {
		if got := show(t, lane.Decisions[i-1]); got != want {
			t.Errorf("request %d: got %s, want %s", i, got, want)
		}
	}
	if got, want := show(t, lane.FirstDenial), `{"request":60,"at":0.983333,"retry_after":0.016667,"before":59}`; got != want {
		t.Errorf("first denial: got %s, want %s", got, want)
	}
	want := "The first denial is request 60 at 0.983 s: the bucket started with 50 tokens and got 9.833 back, and 59 earlier requests spent 59. " +
		"The 0.833 tokens left are less than the cost of 1. The client may retry after 16.667 ms."
	if lane.Words[0] != want {
		t.Errorf("words: got %q, want %q", lane.Words[0], want)
	}
}

// TestPlay_Levels compares the levels of a token bucket with exact rational arithmetic, rounded down to a thousandth.
func TestPlay_Levels(t *testing.T) {
	r := play(t, `{"lanes": [{"algorithm": "token_bucket", "tokens": 7, "per": "3s", "capacity": 4.5, "cost": 0.7}],
		"traffic": {"phases": [{"shape": "poisson", "rate": 5, "seconds": 40, "seed": 3}, {"shape": "pause", "seconds": 5}]}}`)
	lane := r.Lanes[0]
	capacity, cost, rate := big.NewRat(4500, 1), big.NewRat(700, 1), big.NewRat(7000, 3_000_000)
	level, asOf, next := new(big.Rat).Set(capacity), bucket.Instant(0), 0
	refill := func(at bucket.Instant) {
		level.Add(level, new(big.Rat).Mul(rate, big.NewRat(int64(at-asOf), 1)))
		if level.Cmp(capacity) > 0 {
			level.Set(capacity)
		}
		asOf = at
	}
	floor := func() bucket.Tokens { return bucket.Tokens(new(big.Int).Div(level.Num(), level.Denom()).Int64()) }
	if len(lane.Levels) != playground.Levels || len(lane.Decisions) < 150 {
		t.Fatalf("%d levels and %d decisions", len(lane.Levels), len(lane.Decisions))
	}
	for _, l := range lane.Levels {
		for ; next < len(lane.Decisions) && lane.Decisions[next].At < at(l); next++ {
			d := lane.Decisions[next]
			refill(d.At)
			if allowed := level.Cmp(cost) >= 0; allowed != d.Allowed {
				t.Fatalf("at %d: allowed %t, want %t", d.At, d.Allowed, allowed)
			}
			if d.Allowed {
				level.Sub(level, cost)
			}
			if d.Level != floor() {
				t.Fatalf("after the request at %d: level %v, want %v", d.At, d.Level, floor())
			}
		}
		refill(at(l))
		if l.Level.Tokens() != floor() {
			t.Fatalf("at %d: level %v, want %v", at(l), l.Level.Tokens(), floor())
		}
	}
	if next != len(lane.Decisions) {
		t.Errorf("%d of %d decisions come before the last level", next, len(lane.Decisions))
	}
}

func TestPlay_IsDeterministic(t *testing.T) {
	for _, p := range playground.Presets() {
		in := p.Input
		in.Export = true
		var outputs [2][]byte
		for i := range outputs {
			r, err := playground.Play(t.Context(), in)
			if err != nil {
				t.Fatalf("%s: %v", p.ID, err)
			}
			outputs[i] = []byte(show(t, r))
		}
		if !bytes.Equal(outputs[0], outputs[1]) {
			t.Errorf("%s: two plays differ", p.ID)
		}
	}
}

// Random traffic stays the same across versions, because users share links to it.
func TestPlay_Poisson(t *testing.T) {
	r := play(t, `{"lanes": [{"algorithm": "token_bucket", "tokens": 1, "per": "1s", "capacity": 5}],
		"traffic": {"phases": [{"shape": "poisson", "rate": 2, "seconds": 1000, "seed": 7}]}}`)
	var first []float64
	for _, d := range r.Lanes[0].Decisions[:4] {
		first = append(first, float64(d.At)/1e6)
	}
	if got, want := show(t, first), "[0.157032,0.335168,0.396667,0.48838]"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if n := r.Requests; n < 1850 || n > 2150 { // 2000, and three standard deviations of 45
		t.Errorf("%d requests in 1000 s at 2 a second", n)
	}
}

func TestPlay_Queue(t *testing.T) {
	r := play(t, `{"lanes": [{"algorithm": "leaky_bucket", "tokens": 2, "per": "1s", "queue": 3}],
		"traffic": {"phases": [{"shape": "burst", "count": 6, "seconds": 4}]}}`)
	lane := r.Lanes[0]
	want := `[[0,1,0,3,0,1,0,1,0,1],[0,1,0,2,0.5,0,-1,1,1,1],[0,1,0,1,1,-1,-2,1,2,1],[0,1,0,0,1.5,-2,-3,1,3,1],[0,0,0.5,0,0,-3,-3,1,4,1],[0,0,0.5,0,0,-3,-3,1,5,1]]`
	if got := show(t, lane.Decisions); got != want {
		t.Errorf("decisions: got %s, want %s", got, want)
	}
	if lane.Totals.Delayed != 3 || lane.Owes != api.Amount(3*bucket.Token) {
		t.Errorf("delayed %d, owes %v; want 3 and 3", lane.Totals.Delayed, lane.Owes)
	}
	if !strings.HasPrefix(lane.Words[1], "The first denial is request 5 at 0 s: 3 tokens are waiting, and the queue holds at most 3 tokens.") {
		t.Errorf("words: %q", lane.Words)
	}
}

func TestPlay_Never(t *testing.T) {
	r := play(t, `{"lanes": [{"algorithm": "token_bucket", "tokens": 1, "per": "1s", "capacity": 5}],
		"traffic": {"retry": true, "phases": [{"shape": "trace", "trace": "{\"at\":0,\"cost\":6}\n{\"at\":1,\"cost\":2.5}"}]}}`)
	lane := r.Lanes[0]
	if got, want := show(t, lane.Decisions), `[[0,0,null,5,0,5,5,6,0,1],[1,1,0,2,0,5,2.5,2.5,1,1]]`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if lane.Totals.Never != 1 || show(t, lane.FirstDenial) != `{"request":1,"at":0,"retry_after":null,"before":0}` {
		t.Errorf("totals %+v, first denial %s", lane.Totals, show(t, lane.FirstDenial))
	}
	if want := "A request that costs 6 tokens is never allowed: the limit is 5. The answer has no Retry-After."; lane.Words[0] != want {
		t.Errorf("words: %q", lane.Words)
	}
}

// A denied client retries after its Retry-After in whole seconds, with the jitter of the rule.
func TestPlay_Retry(t *testing.T) {
	const traffic = `"traffic": {"retry": true, "phases": [{"shape": "burst", "count": 4, "seconds": 30}]}}`
	r := play(t, `{"lanes": [{"algorithm": "fixed_window", "tokens": 1, "per": "10s", "jitter": "0"}], `+traffic)
	want := `[[0,1,0,0,0,1,0,1,0,1],[0,0,10,0,0,0,0,1,1,1],[0,0,10,0,0,0,0,1,2,1],[0,0,10,0,0,0,0,1,3,1],
		[10,1,0,0,0,1,0,1,1,2],[10,0,10,0,0,0,0,1,2,2],[10,0,10,0,0,0,0,1,3,2],[20,1,0,0,0,1,0,1,2,3],[20,0,10,0,0,0,0,1,3,3]]`
	if got := show(t, r.Lanes[0].Decisions); got != strings.Join(strings.Fields(want), "") {
		t.Errorf("got %s, want %s", got, want)
	}
	if got := r.Lanes[0].Totals; got.Unserved != 1 || got.MaxAtOnce != 4 {
		t.Errorf("unserved %d and crowd %d, want 1 and 4", got.Unserved, got.MaxAtOnce)
	}
	spread := play(t, `{"lanes": [{"algorithm": "fixed_window", "tokens": 1, "per": "10s", "jitter": "100%"}], `+traffic)
	instants := map[bucket.Instant]bool{}
	for _, d := range spread.Lanes[0].Decisions {
		if instants[d.At] = true; d.Try > 1 && d.At < 10_000_000 {
			t.Errorf("client %d comes back at %d, before it was told", d.Client, d.At)
		}
	}
	if len(instants) < 4 {
		t.Errorf("with jitter the clients come at %d instants", len(instants))
	}
}

// A request sent by hand is decided in order with the others.
func TestPlay_Hand(t *testing.T) {
	r := play(t, `{"lanes": [{"name": "By Hand!", "algorithm": "sliding_log", "tokens": 1, "per": "1s"}],
		"traffic": {"phases": [{"shape": "burst", "count": 1, "seconds": 3}], "hand": [2.25, 0.5]}, "export": true}`)
	lane := r.Lanes[0]
	if got, want := show(t, lane.Decisions), `[[0,1,0,0,0,1,0,1,0,1],[0.5,0,0.5,0,0,0,0,1,1,1],[2.25,1,0,0,0,1,0,1,2,1]]`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if want := "{\"at\":0,\"ip\":\"192.0.2.1\"}\n{\"at\":0.5,\"ip\":\"192.0.2.1\"}\n{\"at\":2.25,\"ip\":\"192.0.2.1\"}\n"; lane.Trace != want {
		t.Errorf("trace: got %q, want %q", lane.Trace, want)
	}
	if lane.Rule != "by-hand" || !strings.Contains(lane.Policy, `"name": "by-hand"`) {
		t.Errorf("rule %q of %s", lane.Rule, lane.Policy)
	}
}

func TestPlay_ObeysContext(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 0)
	defer cancel()
	if _, err := playground.Play(ctx, playground.Presets()[0].Input); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want the context's error", err)
	}
}

// The largest input is played.
func TestPlay_AtTheBounds(t *testing.T) {
	in := api.Play{Traffic: api.PlayTraffic{Phases: []api.PlayPhase{{Shape: "burst", Count: playground.MaxRequests, Seconds: "86400"}}}}
	for _, a := range []string{"sliding_log", "sliding_window", "fixed_window", "token_bucket"} {
		l := api.PlayLane{Algorithm: a, Tokens: "10000", Per: "24h"}
		if a == "token_bucket" {
			l.Capacity = "10000"
		}
		in.Lanes = append(in.Lanes, l)
	}
	r, err := playground.Play(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range r.Lanes {
		if l.Totals.Sent != playground.MaxRequests || l.Totals.Allowed != 10_000 {
			t.Errorf("%s: %d of %d", l.Algorithm, l.Totals.Allowed, l.Totals.Sent)
		}
	}
	if r.Seconds != api.Seconds(24*time.Hour) {
		t.Errorf("it lasts %v", time.Duration(r.Seconds))
	}
}

// at returns the instant of a point.
func at(p api.Point) bucket.Instant { return bucket.Instant(p.After / time.Microsecond) }

// A request holds its slot for the time of the lane, and the chart shows the ends.
func TestPlay_Concurrency(t *testing.T) {
	r := play(t, `{"lanes": [{"name": "jobs", "algorithm": "concurrency", "tokens": 2, "per": "2s"}],
		"traffic": {"phases": [{"shape": "steady", "rate": 1, "seconds": 6}], "hand": [0.5, 2.5]}, "export": true}`)
	lane := r.Lanes[0]
	for i, want := range []string{
		"[0,1,0,1,0,2,1,1,0,1]",
		"[0.5,1,0,0,0,1,0,1,1,1]",
		"[1,0,5,0,0,0,0,1,2,1]",
		"[2,1,0,0,0,1,0,1,3,1]",
		"[2.5,1,0,0,0,1,0,1,4,1]",
		"[3,0,5,0,0,0,0,1,5,1]",
		"[4,1,0,0,0,1,0,1,6,1]",
		"[5,1,0,0,0,1,0,1,7,1]",
	} {
		if got := show(t, lane.Decisions[i]); got != want {
			t.Errorf("request %d: got %s, want %s", i+1, got, want)
		}
	}
	if levels := show(t, lane.Levels); !strings.Contains(levels, "[1.999999,0],[2,1]") {
		t.Errorf("the chart does not show that a request ends at 2 s: %s", levels)
	}
	if !strings.HasPrefix(lane.Trace, `{"at":0,"ip":"192.0.2.1","duration":2}`) {
		t.Errorf("the trace has no durations: %s", lane.Trace)
	}
	const first = "The first denial is request 3 at 1 s: all 2 slots are held, for 2 s each. The client may retry after 5 s."
	if lane.Words[0] != first || lane.PerSecond != 0 || lane.Totals.Peak != 0 {
		t.Errorf("%q, %v per second, peak %v", lane.Words, lane.PerSecond, lane.Totals.Peak)
	}
}

// A lease of a policy has a bound, and so has the duration of a request.
func TestPlay_LongRequests(t *testing.T) {
	for per, ok := range map[string]bool{"8h": true, "8h1s": false, "87600h": false, "2000000h": false} {
		in := api.Play{Lanes: []api.PlayLane{{Algorithm: "concurrency", Tokens: "2", Per: per}}}
		in.Traffic.Phases = []api.PlayPhase{{Shape: "pause", Seconds: "1"}}
		_, err := playground.Play(t.Context(), in)
		if ok != (err == nil) || !ok && !strings.Contains(err.Error(), "/lanes/0/per") {
			t.Errorf("%s: %v", per, err)
		}
	}
}
