// SPDX-License-Identifier: Apache-2.0

package browser_test

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/prose"
	"github.com/metehq/mete/proof/browser"
)

// A told is what the page hears of a bucket: a look, or a decision.
type told struct {
	Look      bool     `json:"look"`
	T         float64  `json:"t"`
	Level     float64  `json:"level"`
	FullAfter *float64 `json:"fullAfter"`
}

// A heard is a bucket under some takes: what the page hears of it, and what the engine
// says that it held at instants between.
type heard struct {
	Limit map[string]any `json:"limit"`
	Told  []told         `json:"told"`
	At    []float64      `json:"at"`
	want  []float64
}

func inSeconds(i bucket.Instant) float64 { return float64(i) / 1e6 }

func inTokens(t bucket.Tokens) float64 { return float64(t) / 1000 }

// levelOf is what a bucket holds: below 0 where it owes.
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
			if !known { // when a bucket gets tokens that was full whenever somebody looked
				continue
			}
			h.At, h.want = append(h.At, inSeconds(now)), append(h.want, levelOf(l.Peek(s, now, bucket.Token, 0)))
		}
	}
	return h
}

// What the page draws between two events is what the engine holds then: of every
// algorithm, but those that slide, of which it draws no more than that.
func TestKey_LevelIsTheEngines(t *testing.T) {
	t.Parallel()
	site := browser.Serve(t, slowPolicy)
	page := browser.Open(t, browser.Desktop, browser.Light)
	page.Remember(browser.ReadToken)
	await(page, site.Page("keys"), "Keys")
	queue := 7 * bucket.Token
	per := func(tokens bucket.Tokens, every time.Duration) bucket.Rate {
		return bucket.Rate{Tokens: tokens, Per: every}
	}
	for name, spec := range map[string]bucket.Spec{
		"token bucket":            {Capacity: 10_000, Rate: per(3_000, time.Second)},
		"odd rate":                {Capacity: 7_777, Rate: per(1_001, 333*time.Millisecond)},
		"leaky bucket":            {Capacity: 1_000, Rate: per(2_000, time.Second), Queue: queue},
		"stepped":                 {Algorithm: bucket.Stepped, Capacity: 20_000, Rate: per(3_000, 1300*time.Millisecond)},
		"stepped, start":          {Algorithm: bucket.Stepped, Capacity: 20_000, Rate: per(7_000, 4*time.Second), Start: time.Second},
		"stepped, of the key":     {Algorithm: bucket.Stepped, Capacity: 20_000, Rate: per(7_000, 4*time.Second), Anchor: bucket.AnchorKey},
		"fixed window":            {Algorithm: bucket.Stepped, Capacity: 10_000, Rate: per(10_000, 5*time.Second)},
		"fixed window, of itself": {Algorithm: bucket.Stepped, Capacity: 10_000, Rate: per(10_000, 5*time.Second), Anchor: bucket.AnchorFirst},
		"sliding window":          {Algorithm: bucket.SlidingWindow, Rate: per(10_000, 5*time.Second)},
		"sliding log":             {Algorithm: bucket.SlidingLog, Rate: per(10_000, 5*time.Second)},
	} {
		limit, _, err := spec.Compile()
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for seed := range uint64(5) {
			h := hear(limit.For("k"), rand.New(rand.NewPCG(seed, 1)))
			text, err := json.Marshal(h)
			if err != nil {
				t.Fatal(err)
			}
			got := browser.Eval[[]float64](page, `import('./key/level.js').then(({Level, limitOf}) => {
				const heard = `+string(text)+`, level = new Level(1e6), limit = limitOf(heard.limit), got = [];
				for (const event of heard.told) {
					got.push(...heard.at.splice(0, heard.at.findIndex((t) => t > event.t)).map((t) => level.at(t)));
					event.look ? level.look({...event, limit}) : level.decide({...event, limit, kind: 'allowed', cost: 1});
				}
				return [...got, ...heard.at.map((t) => level.at(t))];
			})`)
			if problem := differs(h, got); problem != "" {
				t.Errorf("%s, seed %d: %s", name, seed, problem)
			}
		}
	}
}

// differs says where the page draws something else than the engine holds.
func differs(h heard, got []float64) string {
	if len(got) != len(h.want) {
		return fmt.Sprintf("%d levels, want %d", len(got), len(h.want))
	}
	for i, want := range h.want {
		if h.Limit["refill"] == "sliding" && got[i] <= want {
			continue
		}
		if math.Abs(got[i]-want) > 0.002 { // amounts are told rounded down to a thousandth
			return fmt.Sprintf("at %f it draws %v, and the engine holds %v", h.At[i], got[i], want)
		}
	}
	return ""
}
