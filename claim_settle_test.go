// SPDX-License-Identifier: Apache-2.0

package mete_test

import (
	"testing"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
)

// A scale that changes between two attempts at one reservation changes no settlement: the
// first attempt has spent, at the scale that it had.
func TestSettle_RetryAtAnotherScale(t *testing.T) {
	factor := bucket.Tokens(1)
	r := newBare(t, mete.Config{Scale: func(c bucket.Tokens) bucket.Tokens { return c * factor }})
	l := limit(t, 100, "1/1h")
	req := one("k", l, 10*whole)
	req.ID = "attempt"
	r.reserve(req)
	factor = 3
	res := r.reserve(req)
	if !res.Allowed || res.Limits[0].Cost != 10*whole {
		t.Fatalf("%+v, want the answer to the first attempt", res.Decision)
	}
	if err := res.Settle(t.Context(), 10); err != nil {
		t.Fatal(err)
	}
	r.left("k", l, "90")
}

// What a retry took is what the first attempt took, in the tokens of the caller.
func TestTake_RetryAtAnotherScale(t *testing.T) {
	factor := bucket.Tokens(1)
	r := newBare(t, mete.Config{Scale: func(c bucket.Tokens) bucket.Tokens { return c * factor }})
	req := one("k", limit(t, 100, "1/1h"), 10*whole)
	for _, factor = range []bucket.Tokens{2, 3, 1} {
		req.ID = "attempt"
		if d := r.do("take", func() (mete.Decision, error) { return r.Take(t.Context(), req) }); d.Limits[0].Cost != 20*whole || d.Taken != 10*whole {
			t.Errorf("at the scale %d: cost %v, taken %v; want 20 and 10", factor, d.Limits[0].Cost, d.Taken)
		}
	}
}
