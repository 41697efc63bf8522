// SPDX-License-Identifier: Apache-2.0

package cli_test

import (
	"bufio"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/metehq/mete/api"
	"github.com/metehq/mete/internal/playground"
)

// A replayed is one line of mete replay, with the fields that the playground also has.
type replayed struct {
	At         json.Number  `json:"at"`
	Allowed    bool         `json:"allowed"`
	Rule       string       `json:"rule"`
	Remaining  json.Number  `json:"remaining"`
	RetryAfter *json.Number `json:"retry_after"`
	Wait       json.Number  `json:"wait"`
}

// For an exported playground, mete replay makes the same decision for every request.
func TestPlayground_IsWhatReplaySays(t *testing.T) {
	dir := t.TempDir()
	for _, p := range append(playground.Presets(), otherPlays...) {
		in := p.Input
		in.Export = true
		r, err := playground.Play(t.Context(), in)
		if err != nil {
			t.Fatalf("%s: %v", p.ID, err)
		}
		for _, lane := range r.Lanes {
			policy, trace := filepath.Join(dir, "policy.json"), filepath.Join(dir, "trace.jsonl")
			write(t, policy, lane.Policy)
			write(t, trace, lane.Trace)
			stdout, stderr, code := run(t, "replay", "--policy", policy, "--format", "json", trace)
			if code != 0 || stderr != "" {
				t.Fatalf("%s, %s: exit code %d\n%s", p.ID, lane.Name, code, stderr)
			}
			compareLane(t, p.ID+", "+lane.Name, &lane, stdout)
		}
	}
}

// otherPlays have what presets have not: costs of requests, other anchors, and room that rolls over.
var otherPlays = []api.PlayPreset{{ID: "costs", Input: api.Play{
	Lanes: []api.PlayLane{
		{Algorithm: "token_bucket", Tokens: "0.7", Per: "3s", Capacity: "4.5", Cost: "0.5"},
		{Algorithm: "token_bucket", Tokens: "3", Per: "2s", Capacity: "5", Refill: "interval", Anchor: "key"},
		{Algorithm: "fixed_window", Tokens: "3", Per: "2s", Capacity: "6", Anchor: "first"},
		{Algorithm: "leaky_bucket", Tokens: "1", Per: "1s", Capacity: "2.5", Queue: "2"},
	},
	Traffic: api.PlayTraffic{Hand: []json.Number{"0.000001", "5.999999"}, Phases: []api.PlayPhase{
		{Shape: "trace", Trace: "{\"at\":100.25,\"cost\":9}\n{\"at\":100.5,\"cost\":0.001}\n{\"at\":103.75}"},
		{Shape: "poisson", Rate: "2.5", Seconds: "30", Seed: 9},
	}},
}}}

func compareLane(t *testing.T, name string, lane *api.PlayLaneResult, lines string) {
	t.Helper()
	from := bufio.NewScanner(strings.NewReader(lines))
	for i, d := range lane.Decisions {
		if !from.Scan() {
			t.Fatalf("%s: %d decisions, and only %d lines", name, len(lane.Decisions), i)
		}
		var got replayed
		if err := json.Unmarshal(from.Bytes(), &got); err != nil {
			t.Fatal(err)
		}
		text, err := d.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		var want []*json.Number // at, allowed, retry after, remaining, wait, …
		if err := json.Unmarshal(text, &want); err != nil {
			t.Fatal(err)
		}
		wait := *want[4]
		if wait == "0" {
			wait = ""
		}
		same := got.RetryAfter == want[2] || got.RetryAfter != nil && want[2] != nil && *got.RetryAfter == *want[2]
		if got.At != *want[0] || got.Allowed != d.Allowed || !same || got.Remaining != *want[3] || got.Wait != wait || got.Rule != lane.Rule {
			t.Fatalf("%s, request %d: the playground says %s, replay %s", name, i+1, text, from.Bytes())
		}
	}
	if from.Scan() {
		t.Errorf("%s: replay has more than %d requests: %s", name, len(lane.Decisions), from.Bytes())
	}
}

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
