// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/testseed"
)

// TestTextOf_TellsLimitsApart proves that two limits have the same text only if they are equal, because an
// account is found by its text.
func TestTextOf_TellsLimitsApart(t *testing.T) {
	r := rand.New(testseed.PCG(1, 17))
	seen := map[string]bucket.Limit{formatLimit(&bucket.Limit{}): {}}
	kinds := map[byte]int{}
	for range 20_000 {
		owed := bucket.Tokens(r.IntN(3)) * 1000
		spec := bucket.Spec{
			Algorithm: bucket.Algorithm(r.IntN(4)), Capacity: bucket.Tokens(1+r.IntN(3)) * 1000,
			Rate: bucket.Rate{Tokens: bucket.Tokens(1+r.IntN(3)) * 1000, Per: time.Duration(1+r.IntN(3)) * time.Second},
		}
		switch r.IntN(3) {
		case 0:
			spec.MaxReserved = &owed
		case 1:
			spec.Queue = owed
		}
		switch spec.Algorithm {
		case bucket.AlgorithmStepped:
			if spec.Anchor = bucket.Anchor(r.IntN(3)); spec.Anchor == bucket.AnchorEpoch {
				spec.Start = time.Duration(r.IntN(3)) * time.Millisecond
			}
		case bucket.AlgorithmSlidingWindow, bucket.AlgorithmSlidingLog:
			spec.Capacity = 0
		}
		l, _, err := spec.Compile()
		if err != nil {
			continue
		}
		l = l.ForKey([]string{"a", "b"}[r.IntN(2)])
		text := formatLimit(&l)
		if before, known := seen[text]; known && before != l {
			t.Fatalf("%q is %v and %v", text, before, l)
		}
		seen[text] = l
		kinds[text[0]]++
	}
	limits := map[bucket.Limit]bool{}
	for _, l := range seen {
		limits[l] = true
	}
	if len(limits) != len(seen) || len(kinds) < 8 {
		t.Errorf("%d limits have %d texts of %d kinds", len(limits), len(seen), len(kinds))
	}
}

// TestTextOf_IsShort proves that a row of a common limit has at most 44 bytes. Redis keeps such a string in one
// allocation.
func TestTextOf_IsShort(t *testing.T) {
	const most = 44
	for _, rate := range []bucket.Rate{bucket.PerSecond(100 * bucket.Token), {Tokens: 100 * bucket.Token, Per: time.Minute}, {Tokens: 1000 * bucket.Token, Per: time.Hour}} {
		l, err := bucket.NewLimit(100*bucket.Token, rate)
		if err != nil {
			t.Fatal(err)
		}
		row := packedVersion + formatLimit(&l) + " " + strings.Repeat("x", 16)
		if len(row) > most {
			t.Errorf("%q has %d bytes, want at most %d", row, len(row), most)
		}
	}
}
