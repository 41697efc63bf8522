// SPDX-License-Identifier: Apache-2.0

package bucket_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/metehq/mete/bucket"
)

// A peek plus its cost equals the following take.
func TestSnapshot_With(t *testing.T) {
	eachKind(t, func(t *testing.T, r *rand.Rand, kind bucket.Spec) {
		for range 300 {
			o, now := randomOf(r, kind), upTo(r, 1<<50)
			var s bucket.State
			for range 10 {
				now = walk(r, o, now)
				cost := bucket.Tokens(max(price(r, o), 0))
				wait := []time.Duration{0, time.Duration(upTo(r, 1<<40)) * time.Microsecond, bucket.Forced}[r.IntN(3)]
				got := o.limit.Peek(s, bucket.Instant(now), cost, wait).WithCost()
				after, want := o.limit.Reserve(s, bucket.Instant(now), cost, wait)
				if got != want {
					t.Fatalf("%v at %d, %v of %+v:\n got %+v\nwant %+v", o.limit, now, cost, s, got, want)
				}
				s = after
			}
		}
	})
}
