// SPDX-License-Identifier: Apache-2.0

package bucket_test

import (
	"math/rand/v2"
	"testing"

	"github.com/metehq/mete/bucket"
)

func TestSnapshot_Without(t *testing.T) {
	eachKind(t, func(t *testing.T, r *rand.Rand, kind bucket.Spec) {
		for range 300 {
			o, now := randomOf(r, kind), upTo(r, 1<<50)
			var s bucket.State
			for range 10 {
				now = walk(r, o, now)
				cost := bucket.Tokens(max(price(r, o), 0))
				before := o.limit.Peek(s, bucket.Instant(now), cost, 0)
				after, snap := o.limit.Take(s, bucket.Instant(now), cost)
				if got := snap.WithoutCost(); snap.Allowed && kind.Algorithm != bucket.AlgorithmSlidingLog && got.Remaining() != before.Remaining() {
					t.Fatalf("%v: took %v, and without it %v remain; before, %v did", o.limit, cost, got.Remaining(), before.Remaining())
				} else if !snap.Allowed && got != snap {
					t.Fatalf("%v: a denied snapshot was changed", o.limit)
				}
				s = after
			}
		}
	})
}
