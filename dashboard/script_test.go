// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"encoding/json"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/metehq/mete/api"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/playground"
	"github.com/metehq/mete/internal/proctest"
	"github.com/metehq/mete/policy"
)

// TestScripts runs the tests in testjs with node's test runner, on the embedded scripts and a file with
// results of the engine.
func TestScripts(t *testing.T) {
	t.Parallel()
	node := proctest.Find(t, "node", "nodejs")
	dir := t.TempDir()
	write := func(name string, text []byte) {
		t.Helper()
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("package.json", []byte(`{"type": "module"}`))
	for name, a := range allAssets(t) {
		write("assets/"+name, a.plain)
	}
	tests, err := filepath.Glob("testjs/*.test.js")
	if err != nil || len(tests) == 0 {
		t.Fatalf("no tests in testjs: %v", err)
	}
	for _, name := range tests {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		write(filepath.ToSlash(name), text)
	}
	engine, err := json.Marshal(engineSays(t))
	if err != nil {
		t.Fatal(err)
	}
	write("testjs/engine.json", engine)

	cmd := exec.CommandContext(t.Context(), node, append([]string{"--test", "--test-reporter=spec"}, tests...)...)
	cmd.Dir = dir
	output, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("node --test testjs: %v\n%s", err, output)
	}
	t.Logf("%s", output)
}

// An engineOutput has the results that the scripts are compared with.
type engineOutput struct {
	Algorithms []policy.AlgorithmKind `json:"algorithms"`
	Buckets    []heard                `json:"buckets"`
	Presets    []api.PlayPreset       `json:"presets"`
	Bounds     api.PlayBounds         `json:"bounds"`
	Played     []play                 `json:"played"`
}

// A play is the server's response to a preset.
type play struct {
	ID string `json:"id"`
	*api.PlayResult
}

func engineSays(t *testing.T) engineOutput {
	t.Helper()
	out := engineOutput{
		Presets: playground.Presets(), Algorithms: policy.Algorithms(),
		Bounds: api.PlayBounds{
			Lanes: playground.MaxLanes, Phases: playground.MaxPhases, Requests: playground.MaxRequests,
			Seconds: playground.MaxSeconds, Hand: playground.MaxHand, Body: 1 << 20,
		},
	}
	for _, preset := range out.Presets {
		r, err := playground.Play(t.Context(), preset.Input)
		if err != nil {
			t.Fatalf("preset %s: %v", preset.ID, err)
		}
		out.Played = append(out.Played, play{preset.ID, r})
	}
	for name, spec := range engineSpecs {
		limit, _, err := spec.Compile()
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for seed := range uint64(5) {
			h := hear(limit.ForKey("k"), rand.New(rand.NewPCG(seed, 1)))
			h.Name = name
			out.Buckets = append(out.Buckets, h)
		}
	}
	return out
}

func perTime(tokens bucket.Tokens, every time.Duration) bucket.Rate {
	return bucket.Rate{Tokens: tokens, Per: every}
}

var engineSpecs = map[string]bucket.Spec{
	"token bucket":            {Capacity: 10_000, Rate: perTime(3_000, time.Second)},
	"odd rate":                {Capacity: 7_777, Rate: perTime(1_001, 333*time.Millisecond)},
	"leaky bucket":            {Capacity: 1_000, Rate: perTime(2_000, time.Second), Queue: 7 * bucket.Token},
	"stepped":                 {Algorithm: bucket.AlgorithmStepped, Capacity: 20_000, Rate: perTime(3_000, 1300*time.Millisecond)},
	"stepped, start":          {Algorithm: bucket.AlgorithmStepped, Capacity: 20_000, Rate: perTime(7_000, 4*time.Second), Start: time.Second},
	"stepped, of the key":     {Algorithm: bucket.AlgorithmStepped, Capacity: 20_000, Rate: perTime(7_000, 4*time.Second), Anchor: bucket.AnchorKey},
	"fixed window":            {Algorithm: bucket.AlgorithmStepped, Capacity: 10_000, Rate: perTime(10_000, 5*time.Second)},
	"fixed window, of itself": {Algorithm: bucket.AlgorithmStepped, Capacity: 10_000, Rate: perTime(10_000, 5*time.Second), Anchor: bucket.AnchorFirst},
	"sliding window":          {Algorithm: bucket.AlgorithmSlidingWindow, Rate: perTime(10_000, 5*time.Second)},
	"sliding log":             {Algorithm: bucket.AlgorithmSlidingLog, Rate: perTime(10_000, 5*time.Second)},
}

// A told is an event of /v1/watch.
type told struct {
	T      float64     `json:"t"`
	Levels []api.Point `json:"levels"`
	Retry  api.Seconds `json:"retry"`
	Full   api.Seconds `json:"full"`
}

// A heard has the events that a page receives for a bucket, and the engine's levels between them.
type heard struct {
	Name string    `json:"name"`
	Told []told    `json:"told"`
	At   []float64 `json:"at"`
	Want []float64 `json:"want"`
	Full []float64 `json:"full"` // in how many seconds
}

func inSeconds(i bucket.Instant) float64 { return float64(i) / 1e6 }

// hear simulates takes at random instants and reports some of them.
func hear(l bucket.Limit, random *rand.Rand) (h heard) {
	var s bucket.State
	now := bucket.Instant(1_800_000_000_123_456)
	shown, shownAt := l.Peek(s, now, bucket.Token, 0), now
	points := []bucket.Point{{After: 0, Level: shown.Level()}} // After counts from here
	begin := now
	after := func(at bucket.Instant) time.Duration { return time.Duration(at-begin) * time.Microsecond }
	see := func(next bucket.Snapshot) {
		for _, p := range shown.LevelCurve(after(now)-after(shownAt), 50)[1:] {
			points = append(points, bucket.Point{After: after(shownAt) + p.After, Level: p.Level})
		}
		points = append(points, bucket.Point{After: after(now), Level: next.Level()})
		shown, shownAt = next, now
	}
	for range 60 {
		now += bucket.Instant(random.Int64N(2_000_000) + 1)
		next, taken := l.Reserve(s, now, bucket.Tokens(random.Int64N(6000)+1), time.Duration(random.Int64N(3))*time.Second)
		s = next
		if see(taken); random.IntN(2) == 0 {
			continue
		}
		e := told{T: inSeconds(now), Retry: api.Seconds(shown.RoomAfter(bucket.Token)), Full: api.Seconds(shown.FullAfter())}
		for _, p := range points {
			e.Levels = append(e.Levels, api.Point{After: p.After - after(now), Level: api.Amount(p.Level)})
		}
		for _, p := range shown.LevelCurve(30*time.Second, 50)[1:] {
			e.Levels = append(e.Levels, api.Point{After: p.After, Level: api.Amount(p.Level)})
		}
		h.Told, points = append(h.Told, e), nil
		for range 4 {
			now += bucket.Instant(random.Int64N(400_000) + 1)
			then := l.Peek(s, now, bucket.Token, 0)
			h.At, h.Want, h.Full = append(h.At, inSeconds(now)), append(h.Want, float64(then.Level())/1000), append(h.Full, then.FullAfter().Seconds())
		}
	}
	return h
}
