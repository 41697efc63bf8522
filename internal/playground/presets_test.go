// SPDX-License-Identifier: Apache-2.0

package playground_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/metehq/mete/api"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/playground"
)

// played returns the result of a preset.
func played(t *testing.T, id string) *api.PlayResult {
	t.Helper()
	i := slices.IndexFunc(playground.Presets(), func(p api.PlayPreset) bool { return p.ID == id })
	if i < 0 {
		t.Fatalf("there is no preset %s", id)
	}
	r, err := playground.Play(t.Context(), playground.Presets()[i].Input)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// An expectation has the totals of a lane. request and at describe the first denial and are zero if there is none.
type expectation struct {
	sent, allowed, delayed int
	request                int
	at                     string // s
}

// presetNumbers are computed by hand with the arithmetic in doc/algorithm.md.
var presetNumbers = map[string][]expectation{
	"first-steps":       {{29, 21, 0, 10, "4.5"}},
	"burst-then-steady": {{70, 70, 0, 0, ""}, {70, 45, 0, 6, "0"}},
	"window-edge":       {{48, 30, 0, 21, "11"}, {48, 24, 0, 11, "10.5"}, {48, 20, 0, 11, "10.5"}, {48, 25, 0, 12, "10.5"}},
	"queue-smooths":     {{45, 30, 0, 11, "0"}, {45, 45, 42, 0, ""}},
	"at-a-time":         {{36, 24, 0, 5, "1.333333"}, {36, 27, 0, 11, "3.333333"}}, // 4 of 6 in two seconds
	"retry-herd":        {{300, 100, 0, 21, "1"}, {300, 100, 0, 21, "1"}, {1398, 100, 0, 21, "1"}, {100, 100, 99, 0, ""}},
	"chance":            {{249, 131, 0, 2, "0.12566"}, {249, 235, 0, 53, "5.961896"}, {249, 249, 0, 0, ""}},

	"burst-and-recover": {{240, 129, 0, 60, "0.983333"}}, // 50 + 29.8 of 3 s, and 50
	"parking-meter":     {{22, 19, 0, 11, "0"}},
	"capacity-is-rate":  {{1000, 299, 0, 125, "0.248"}, {1000, 200, 0, 2, "0.002"}},
	"weighted":          {{150, 150, 0, 0, ""}, {150, 119, 0, 59, "3.866666"}, {150, 59, 0, 15, "0.933333"}},
	"five-minutes":      {{3000, 2249, 0, 2000, "99.95"}},
	"too-much-room":     {{10100, 10059, 0, 10020, "1.95"}, {10100, 109, 0, 51, "0"}},
	"token-or-leaky":    {{66, 66, 0, 0, ""}, {66, 17, 0, 2, "1"}, {66, 66, 49, 0, ""}},

	"per-address":    {{80, 72, 0, 43, "10"}},
	"how-much-room":  {{168, 55, 0, 2, "0"}, {168, 109, 0, 11, "0"}, {168, 149, 0, 51, "0"}, {168, 168, 0, 0, ""}},
	"request-weight": {{1600, 1399, 0, 1334, "3.3325"}, {1600, 279, 0, 211, "0.525"}},
	"tiers":          {{120, 120, 0, 0, ""}, {120, 40, 0, 21, "0"}},

	"plans":         {{4800, 69, 0, 51, "0.020833"}, {4800, 699, 0, 522, "0.217083"}, {4800, 3999, 0, 3428, "1.427916"}, {4800, 4800, 0, 0, ""}},
	"strict-window": {{600, 100, 0, 11, "10"}, {600, 91, 0, 11, "10"}},

	"failed-logins":   {{120, 24, 0, 6, "300"}, {120, 29, 0, 12, "660"}}, // the 11th comes when 1.67 are back
	"half-a-minute":   {{5, 5, 0, 0, ""}},
	"sign-ups":        {{1800, 149, 0, 103, "102"}},
	"messages":        {{48, 48, 0, 0, ""}, {48, 32, 0, 11, "0"}},
	"small-and-often": {{45, 40, 0, 41, "2700"}},
	"reserve":         {{4, 4, 4, 0, ""}},
	"roll-over":       {{45, 30, 0, 11, "1"}, {45, 45, 0, 0, ""}},
	"third-party":     {{320, 200, 0, 201, "60.1"}, {320, 199, 0, 101, "60"}, {320, 99, 0, 51, "59.9"}},

	"intervals":      {{23, 23, 0, 0, ""}, {23, 23, 0, 0, ""}},
	"lost-fractions": {{200, 200, 0, 0, ""}, {200, 200, 0, 0, ""}},
}

func TestPresets_Numbers(t *testing.T) {
	for _, p := range playground.Presets() {
		want, ok := presetNumbers[p.ID]
		r := played(t, p.ID)
		if !ok || len(want) != len(r.Lanes) {
			t.Errorf("%s: %d lanes, %d expectations", p.ID, len(r.Lanes), len(want))
			continue
		}
		for i, l := range r.Lanes {
			got := expectation{l.Totals.Sent, l.Totals.Allowed, l.Totals.Delayed, 0, ""}
			if l.FirstDenial != nil {
				got.request, got.at = l.FirstDenial.Request, show(t, l.FirstDenial.At)
			}
			if got != want[i] {
				t.Errorf("%s, %s: got %+v, want %+v", p.ID, l.Name, got, want[i])
			}
			if len(l.Warnings) > 0 || l.Totals.Denied != l.Totals.Sent-l.Totals.Allowed {
				t.Errorf("%s, %s: warnings %q, totals %+v", p.ID, l.Name, l.Warnings, l.Totals)
			}
		}
	}
	if len(presetNumbers) != len(playground.Presets()) {
		t.Errorf("%d presets, %d expectations", len(playground.Presets()), len(presetNumbers))
	}
}

// The tests below check other figures in the texts of presets.

func TestPresets_BurstAndRecover(t *testing.T) {
	lane := played(t, "burst-and-recover").Lanes[0]
	second, last := 0, 0
	for _, d := range lane.Decisions {
		switch {
		case d.Allowed && d.At >= 1_000_000 && d.At < 3_000_000:
			second++
		case d.Allowed && d.At == 8_000_000:
			last++
		}
	}
	if second != 20 || last != 50 {
		t.Errorf("%d of the 120 requests after the first second pass, want 20, one in six; and %d of the last 60, want 50", second, last)
	}
}

func micros(at bucket.Instant) time.Duration { return time.Duration(at) * time.Microsecond }

// levelAt returns the level of a lane at an instant, before the requests of that instant.
func levelAt(lane api.PlayLaneResult, at bucket.Instant) bucket.Tokens {
	level := bucket.Tokens(-1)
	for _, l := range lane.Levels {
		if l.After <= micros(at) {
			level = l.Level.Tokens()
		}
	}
	return level
}

func TestPresets_Intervals(t *testing.T) {
	lane := played(t, "intervals").Lanes[0]
	for at, want := range map[bucket.Instant]bucket.Tokens{9_999_999: 15, 10_000_000: 20, 16_000_000: 2, 19_999_999: 2, 20_000_000: 7, 29_999_999: 7, 30_000_000: 12} {
		if got := levelAt(lane, at); got != want*bucket.Token {
			t.Errorf("at %v: %v tokens, want %v", time.Duration(at)*time.Microsecond, got, want)
		}
	}
	for request, want := range map[int]bucket.Tokens{5: 15, 23: 2} {
		if got := lane.Decisions[request-1].Level; got != want*bucket.Token {
			t.Errorf("after request %d: %v tokens, want %v", request, got, want)
		}
	}
}

// Windows and intervals fill a bucket in one instant, so the levels have a step.
func TestPresets_Steps(t *testing.T) {
	for _, tt := range []struct {
		preset string
		lane   int
		at     bucket.Instant
		before bucket.Tokens
		after  bucket.Tokens
	}{
		{"window-edge", 0, 10_000_000, 0, 10},
		{"third-party", 0, 120_000_000, 0, 100},
		{"intervals", 0, 20_000_000, 2, 7},
	} {
		levels := played(t, tt.preset).Lanes[tt.lane].Levels
		i := slices.IndexFunc(levels, func(l api.Point) bool { return l.After == micros(tt.at) })
		if i < 1 || levels[i-1] != (api.Point{After: micros(tt.at - 1), Level: api.Amount(tt.before * bucket.Token)}) || levels[i].Level.Tokens() != tt.after*bucket.Token {
			t.Errorf("%s at %d: level %d of %d; want %v, and a microsecond later %v", tt.preset, tt.at, i, len(levels), tt.before, tt.after)
		}
		if !slices.IsSortedFunc(levels, func(a, b api.Point) int { return int(a.After - b.After) }) {
			t.Errorf("%s: the levels are not in order of time", tt.preset)
		}
	}
}

func TestPresets_Peaks(t *testing.T) {
	for id, want := range map[string][]string{
		"window-edge":      {"20", "18", "10", "19"},
		"third-party":      {"200", "199", "99"},
		"capacity-is-rate": {"199", "100"},
		"strict-window":    {"10", "10"},
	} {
		for i, l := range played(t, id).Lanes {
			if got := show(t, l.Totals.Peak); got != want[i] {
				t.Errorf("%s, %s: at most %s tokens within %s s, want %s", id, l.Name, got, show(t, l.Window), want[i])
			}
		}
	}
}

func TestPresets_Reserve(t *testing.T) {
	lane := played(t, "reserve").Lanes[0]
	want := `[[0,1,0,3,2,3,-2,5,0,1],[4,1,0,2,3,2,-3,5,1,1],[8,1,0,1,4,1,-4,5,2,1],[12,1,0,0,5,0,-5,5,3,1]]`
	if got := show(t, lane.Decisions); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestPresets_RetryHerd(t *testing.T) {
	crowds := []int{}
	for _, l := range played(t, "retry-herd").Lanes {
		second := map[bucket.Instant]int{}
		most := 0
		for _, d := range l.Decisions {
			if d.Try > 1 {
				second[d.At]++
				most = max(most, second[d.At])
			}
		}
		crowds = append(crowds, most)
	}
	if crowds[0] != 80 || crowds[1] >= 40 || crowds[3] != 0 {
		t.Errorf("at most %v come back at one instant; want 80 without jitter, less than half with it, and 0 who need not", crowds)
	}
}

func TestPresets_HalfAMinute(t *testing.T) {
	lane := played(t, "half-a-minute").Lanes[0]
	if want := "All 5 requests are allowed. The lowest level is 5 tokens, at 0 s. The bucket is full again at 30 s."; lane.Words[0] != want {
		t.Errorf("words: %q, want %q", lane.Words[0], want)
	}
}

// Presets have distinct names and short texts.
func TestPresets_Texts(t *testing.T) {
	seen := map[string]bool{}
	for _, p := range playground.Presets() {
		if seen[p.ID] || seen[p.Title] {
			t.Errorf("%s, %q: twice", p.ID, p.Title)
		}
		seen[p.ID], seen[p.Title] = true, true
		if n := len(p.Text); n < 40 || n > 420 || !strings.HasSuffix(p.Text, ".") {
			t.Errorf("%s: a text of %d bytes, %q", p.ID, n, p.Text)
		}
		if p.Source != nil && (p.Source.Title == "" || p.Source.Note != "" && !strings.HasSuffix(p.Source.Note, ".")) {
			t.Errorf("%s: source %+v", p.ID, p.Source)
		}
	}
}
