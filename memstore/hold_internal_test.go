// SPDX-License-Identifier: Apache-2.0

package memstore

import (
	"fmt"
	"testing"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/store"
)

// A store keeps nothing of holds that have ended, whether their keys return or not, and one entry per renewed hold.
func TestHolds_LeaveNothing(t *testing.T) {
	now := bucket.Instant(1e15)
	s, err := New(Config{Now: func() bucket.Instant { return now }})
	if err != nil {
		t.Fatal(err)
	}
	limit, err := bucket.NewLimit(10*bucket.Token, bucket.Rate{Tokens: bucket.Token, Per: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	hold := func(i int) string {
		h := store.Hold{ID: fmt.Sprintf("hold%028d", i), TTL: time.Minute, Refund: true, Terms: make([]store.Terms, 1)}
		charge := store.Charge{Key: fmt.Sprintf("k%d", i), Limit: limit, Cost: bucket.Token}
		_, id, err := s.Hold(t.Context(), nil, []store.Charge{charge}, mete.Mode{}, h)
		if err != nil || id == "" {
			t.Fatalf("hold %d: %q, %v", i, id, err)
		}
		return id
	}
	for i := range 100 {
		id := hold(i)
		for range 10 {
			now += 1000
			if _, err := s.Renew(t.Context(), id, time.Minute); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := s.Settle(t.Context(), id, 0); err != nil {
			t.Fatal(err)
		}
	}
	entries := 0
	for _, list := range s.holds.due {
		entries += len(*list)
	}
	if entries != 100 {
		t.Errorf("%d entries for 100 renewed holds", entries)
	}
	now = now.Add(time.Hour)
	hold(100)
	if len(s.holds.due) != 1 || len(s.holds.byID) != 1 || len(s.holds.ends) != 1 {
		t.Errorf("%d buckets with entries, %d holds, %d ends; want 1 of each", len(s.holds.due), len(s.holds.byID), len(s.holds.ends))
	}
}
