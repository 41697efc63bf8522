// SPDX-License-Identifier: Apache-2.0

package dropin

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/metehq/mete/bucket"
)

// Every number of requests has a bucket for every unit, which holds exactly that number and refills it in one unit.
func TestNewBucket_EveryLimit(t *testing.T) {
	numbers := []uint32{1, 2, 3, 7, 97, 999, 1000, 1001, 65_537, 999_983, 1_000_003, 16_777_213, 123_456_789, 2_147_483_647, math.MaxUint32 - 1, math.MaxUint32}
	random := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		numbers = append(numbers, 1+random.Uint32()>>random.IntN(32))
	}
	for unit, w := range unitWindows {
		for _, n := range numbers {
			l, err := newBucket(n, w)
			if err != nil {
				t.Fatalf("%d per %v: %v", n, unit, err)
			}
			capacity := bucket.Tokens(n) * bucket.Token
			if whole := l.TimeFor(capacity); l.Capacity() != capacity || whole.Seconds() != float64(w.seconds) {
				t.Fatalf("%d per %v: %v, refills in %v", n, unit, l, whole)
			}
		}
	}
	l, err := newBucket(0, unitWindows[1])
	if _, snap := l.Take(bucket.State{}, 0, bucket.Token); err != nil || snap.Allowed || snap.RetryAfter != bucket.Never {
		t.Errorf("0 requests: %+v, error %v", snap, err)
	}
}

func TestWildcard(t *testing.T) {
	for _, tc := range []struct {
		pattern, text string
		want          bool
	}{
		{"a*", "a", true}, {"a*", "ab", true}, {"a*", "b", false}, {"*a", "ba", true}, {"*a", "ab", false}, {"*", "", true},
		{"a*a", "a", false}, {"a*a", "aa", true}, {"a*b*c", "abc", true}, {"a*b*c", "acb", false}, {"a*bc*c", "abc", false},
		{"a**c", "ac", true}, {"a*b*b*c", "abc", false}, {"a*b*b*c", "abbc", true}, {"*x*", "x", true}, {"*x*", "y", false},
	} {
		w := newWildcard(&node{composite: tc.pattern})
		if got := w.matches([]byte(tc.text)); got != tc.want {
			t.Errorf("%q matches %q: %v, want %v", tc.pattern, tc.text, got, tc.want)
		}
	}
}
