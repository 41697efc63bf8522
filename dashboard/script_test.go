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

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/playground"
	"github.com/metehq/mete/internal/proctest"
	"github.com/metehq/mete/internal/prose"
)

// TestScripts runs the tests in testjs with node's test runner, beside the scripts as they
// are served and a file of what the engine says.
func TestScripts(t *testing.T) {
	t.Parallel()
	node := proctest.Find(t, "node", "nodejs")
	if err := assets.load(); err != nil {
		t.Fatal(err)
	}
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
	for name, a := range assets.all {
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

// An engineOutput is what the scripts are compared with.
type engineOutput struct {
	Buckets []heard             `json:"buckets"`
	Presets []playground.Preset `json:"presets"`
	Bounds  playBounds          `json:"bounds"`
	Played  []play              `json:"played"`
}

// A play is the server's answer to a preset.
type play struct {
	ID string `json:"id"`
	*playground.Result
}

func engineSays(t *testing.T) engineOutput {
	t.Helper()
	out := engineOutput{
		Presets: playground.Presets(),
		Bounds:  playBounds{playground.MaxLanes, playground.MaxPhases, playground.MaxRequests, playground.MaxSeconds, playground.MaxHand, MaxBodyBytes},
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
			h := hear(limit.For("k"), rand.New(rand.NewPCG(seed, 1)))
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
	"stepped":                 {Algorithm: bucket.Stepped, Capacity: 20_000, Rate: perTime(3_000, 1300*time.Millisecond)},
	"stepped, start":          {Algorithm: bucket.Stepped, Capacity: 20_000, Rate: perTime(7_000, 4*time.Second), Start: time.Second},
	"stepped, of the key":     {Algorithm: bucket.Stepped, Capacity: 20_000, Rate: perTime(7_000, 4*time.Second), Anchor: bucket.AnchorKey},
	"fixed window":            {Algorithm: bucket.Stepped, Capacity: 10_000, Rate: perTime(10_000, 5*time.Second)},
	"fixed window, of itself": {Algorithm: bucket.Stepped, Capacity: 10_000, Rate: perTime(10_000, 5*time.Second), Anchor: bucket.AnchorFirst},
	"sliding window":          {Algorithm: bucket.SlidingWindow, Rate: perTime(10_000, 5*time.Second)},
	"sliding log":             {Algorithm: bucket.SlidingLog, Rate: perTime(10_000, 5*time.Second)},
}

// A told is an event that the page gets: a look at the bucket, or a decision.
type told struct {
	Look      bool     `json:"look"`
	T         float64  `json:"t"`
	Level     float64  `json:"level"`
	FullAfter *float64 `json:"fullAfter"`
}

// A heard is a bucket under some takes: the events that the page gets, and what the engine
// holds at instants between them.
type heard struct {
	Name  string         `json:"name"`
	Limit map[string]any `json:"limit"`
	Told  []told         `json:"told"`
	At    []float64      `json:"at"`
	Want  []float64      `json:"want"`
}

func inSeconds(i bucket.Instant) float64 { return float64(i) / 1e6 }

func inTokens(t bucket.Tokens) float64 { return float64(t) / 1000 }

// levelOf returns what a bucket holds: below 0 where it owes.
func levelOf(s bucket.Snapshot) float64 {
	if owed := s.Missing() - s.Limit.Capacity(); owed > 0 && !s.Limit.Queued() {
		return -inTokens(owed)
	}
	return inTokens(s.Room())
}

// hear plays takes at random instants.
func hear(l bucket.Limit, random *rand.Rand) heard {
	rate, capacity := l.Rate(), l.Capacity()
	if l.Queued() {
		capacity += l.MaxReserved()
	}
	h := heard{Limit: map[string]any{
		"refill": prose.Refill(l), "anchor": prose.Anchor(l), "capacity": inTokens(capacity), "rate": map[string]float64{"tokens": inTokens(rate.Tokens), "per": rate.Per.Seconds()},
	}}
	var s bucket.State
	now := bucket.Instant(1_800_000_000_123_456)
	known := false
	for range 60 {
		now += bucket.Instant(random.Int64N(2_000_000) + 1)
		after, shown := l.Reserve(s, now, bucket.Tokens(random.Int64N(6000)+1), time.Duration(random.Int64N(3))*time.Second)
		s = after
		h.Told = append(h.Told, told{T: inSeconds(now), Level: levelOf(shown)})
		if random.IntN(2) == 0 || len(h.Told) == 1 {
			now += bucket.Instant(random.Int64N(500_000) + 1)
			shown = l.Peek(s, now, bucket.Token, 0)
			full := shown.FullAfter().Seconds()
			known = known || full > 0
			h.Told = append(h.Told, told{true, inSeconds(now), levelOf(shown), &full})
		}
		for range 4 {
			now += bucket.Instant(random.Int64N(400_000) + 1)
			if !known { // a bucket that was full at every look: when it gets tokens
				continue
			}
			h.At, h.Want = append(h.At, inSeconds(now)), append(h.Want, levelOf(l.Peek(s, now, bucket.Token, 0)))
		}
	}
	return h
}
