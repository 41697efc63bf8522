// SPDX-License-Identifier: Apache-2.0

package lint_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/testseed"
	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/policy/lint"
)

// A limit that is reported as never reached denies nothing that the others admit.
func TestLint_NeverReached(t *testing.T) {
	const seed = 7
	rnd := rand.New(testseed.PCG(seed, 0))
	said := 0
	for round := range 2000 {
		limits := []string{randomLimit(rnd), randomLimit(rnd)}
		text := `{"name": "r", "limit_keys": ["ip:address"], "limits": [` + strings.Join(limits, ", ") + `]}`
		m, err := policy.Load([]byte(text), policy.Options{})
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		for _, w := range lint.Check(m, lintNow) {
			if w.Code != "contradictory-rates" {
				continue
			}
			said++
			idle := 0
			if strings.HasSuffix(w.Path, "/1") {
				idle = 1
			}
			if at, ok := deniesAlone(rnd, m.Rules()[0].Limits, idle); ok {
				t.Fatalf("seed %d, round %d: %s\n%v\nbut it alone denies the request at %v", seed, round, text, w, at)
			}
		}
	}
	if said < 200 || said > 1800 {
		t.Errorf("said of %d limits of 2000 policies: the test says little", said)
	}
}

// A sliding window estimates more than any of its windows holds: behind a log of three
// seconds, it still counts the requests of four.
func TestLint_SlidingWindowCountsTwoWindows(t *testing.T) {
	for window, want := range map[string]int{"3s": 0, "4s": 1} {
		m, err := policy.Load([]byte(`{"name": "r", "limit_keys": ["ip:address"], "limits": [
			{"algorithm": "sliding_log", "tokens": 14, "window": "`+window+`"}, {"algorithm": "sliding_window", "tokens": 14, "window": "2s"}]}`), policy.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if got := len(lint.Check(m, lintNow)); got != want {
			t.Errorf("a log of %s: warnings %v, want %d", window, lint.Check(m, lintNow), want)
		}
	}
}

func randomLimit(rnd *rand.Rand) string {
	window := []string{"1s", "2s", "3s", "6s", "12s"}[rnd.IntN(5)]
	n := 1 + rnd.IntN(30)
	switch rnd.IntN(6) {
	case 0:
		return fmt.Sprintf(`{"rate": "%d/%s", "burst": %d}`, n, window, 1+rnd.IntN(60))
	case 1:
		return fmt.Sprintf(`{"algorithm": "leaky_bucket", "rate": "%d/%s", "queue": 0, "capacity": %d}`, n, window, 1+rnd.IntN(40))
	case 2:
		return fmt.Sprintf(`{"algorithm": "sliding_window", "tokens": %d, "window": %q}`, n, window)
	case 3:
		return fmt.Sprintf(`{"algorithm": "sliding_log", "tokens": %d, "window": %q}`, n, window)
	}
	anchor := []string{"epoch", "epoch", "first", "key"}[rnd.IntN(4)]
	return fmt.Sprintf(`{"algorithm": "fixed_window", "tokens": %d, "window": %q, "capacity": %d, "anchor": %q}`, n, window, n+rnd.IntN(2)*rnd.IntN(20), anchor)
}

// deniesAlone plays random requests and reports whether the idle'th limit denies
// one that all others admit.
func deniesAlone(rnd *rand.Rand, limits []policy.Limit, idle int) (bucket.Instant, bool) {
	for range 20 {
		states := make([]bucket.State, len(limits))
		now := bucket.Instant(1_800_000_000_000_000 + rnd.Int64N(12_000_000))
		rush := 1 + rnd.Int64N(3_000_000)
		for range 150 {
			if now += bucket.Instant(rnd.Int64N(rush)); rnd.IntN(10) > 0 {
				now -= now % 10 // often at one instant with others
			}
			if rnd.IntN(4) == 0 {
				now += 1_000_000 - now%1_000_000 // where windows begin
			}
			next, all, alone := make([]bucket.State, len(limits)), true, true
			for i, l := range limits {
				var shown bucket.Snapshot
				next[i], shown = l.Bucket.ForKey("k").Take(states[i], now, bucket.Token)
				all = all && shown.Allowed
				alone = alone && shown.Allowed == (i != idle)
			}
			if alone {
				return now, true
			}
			if all {
				states = next
			}
		}
	}
	return 0, false
}
