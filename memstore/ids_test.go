// SPDX-License-Identifier: Apache-2.0

package memstore_test

import (
	"slices"
	"testing"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/memstore"
	"github.com/metehq/mete/store"
	"github.com/metehq/mete/storetest"
)

// An answer is repeated even after the limit has changed.
func TestIDs_AnswerAsItWasUnderAnotherLimit(t *testing.T) {
	clock := storetest.NewClock()
	s := mustNew(t, memstore.Config{Now: clock.Now})
	mode := mete.Mode{ID: "attempt", UpTo: true}
	charges := []store.Charge{{Key: "k", Limit: memstore.LimitOf(t, 5*bucket.Token, bucket.Token, 7*time.Hour), Cost: 9 * bucket.Token}}
	want, allowed, err := s.Take(t.Context(), nil, charges, mode)
	if !allowed || err != nil || want[0].Cost != 5*bucket.Token {
		t.Fatalf("up to 9 of 5: allowed %v, cost %v, error %v", allowed, want[0].Cost, err)
	}
	for _, l := range append(everyAlgorithm(t), bucket.Limit{}) {
		charges[0].Limit = l
		got, allowed, err := s.Take(t.Context(), nil, charges, mode)
		if !allowed || err != nil || !slices.Equal(got, want) {
			t.Errorf("again, under %v: allowed %v, error %v, %+v; want %+v", l, allowed, err, got, want)
		}
	}
}
