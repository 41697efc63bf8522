// SPDX-License-Identifier: Apache-2.0

package mete_test

import (
	"testing"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/storetest"
)

// An attempt is known again though its costs are scaled otherwise by then: it is
// when the protected service suffers that clients try again.
func TestID_ScaledOtherwise(t *testing.T) {
	factor := bucket.Tokens(1)
	l, err := mete.New(storetest.NewNaive(storetest.NewClock().Now), nil, mete.Config{
		Scale: func(cost bucket.Tokens) bucket.Tokens { return cost * factor },
	})
	if err != nil {
		t.Fatal(err)
	}
	req := mete.Request{ID: "7f3a", Charges: []mete.Charge{{Key: "k", Limit: limit(t, 10, "1/1h"), Cost: bucket.Token}}}
	for range 4 {
		d, err := l.Take(t.Context(), req)
		if err != nil || !d.Allowed || d.Limits[0].Remaining() != 9*bucket.Token {
			t.Fatalf("at factor %d: %+v, error %v; want the first answer again: 9 left", factor, d, err)
		}
		factor++
	}
}

// What was taken in part is no answer to a take of all of it, nor is what was
// taken at another cost.
func TestID_AskedForSomethingElse(t *testing.T) {
	for name, shards := range map[string]int{"one bucket": 0, "shards": 4} {
		t.Run(name, func(t *testing.T) {
			l, err := mete.New(storetest.NewNaive(storetest.NewClock().Now), nil, mete.Config{})
			if err != nil {
				t.Fatal(err)
			}
			req := mete.Request{ID: "7f3a", Charges: []mete.Charge{{Key: "k", Limit: limit(t, 20, "1/1h"), Cost: 90 * bucket.Token, Shards: shards}}}
			if d, err := l.TakeUpTo(t.Context(), req); err != nil || d.Taken != 20*bucket.Token {
				t.Fatalf("up to 90 of 20: %+v, error %v", d, err)
			}
			if d, err := l.Take(t.Context(), req); err != nil || d.Allowed {
				t.Errorf("90 of 0 under the same ID: %+v, error %v; want denied", d, err)
			}
			req.Charges[0].Cost = bucket.Token
			if d, err := l.TakeUpTo(t.Context(), req); err != nil || d.Allowed {
				t.Errorf("up to 1 of 0 under the same ID: %+v, error %v; want denied", d, err)
			}
		})
	}
}
