// SPDX-License-Identifier: Apache-2.0

package pgstore_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/pgstore"
	"github.com/metehq/mete/store"
)

// rows counts the buckets of a schema.
func rows(t *testing.T, s pgstore.Config) (n int) {
	t.Helper()
	if err := newPool(t).QueryRow(t.Context(), "SELECT count(*) FROM "+s.Schema+".bucket").Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// TestClear proves that Clear deletes only the keys with the prefix.
func TestClear(t *testing.T) {
	pool := newPool(t)
	config := pgstore.Config{Schema: migrated(t, pool), Timeout: awhile}
	var stores []*pgstore.Store
	for _, config.Prefix = range []string{"a:", "a", "a;", "\xff\xff", "\xff", ""} {
		s := open(t, pool, config)
		spend(t, s, "k")
		stores = append(stores, s)
	}
	for i, want := range []int{5, 3, 3, 2, 1, 0} { // "a" is where "a;" begins, too
		if err := stores[i].Clear(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := rows(t, config); got != want {
			t.Errorf("clear %d: %d rows are left, want %d", i, got, want)
		}
	}
	spend(t, stores[0], "k") // full again
}

func TestClear_Many(t *testing.T) {
	pool := newPool(t)
	config := pgstore.Config{Schema: migrated(t, pool), Timeout: awhile}
	s := open(t, pool, config)
	l, err := bucket.NewLimit(bucket.Token, bucket.Rate{Tokens: bucket.Token, Per: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	const takes = 200 // too many keys for one batch
	for i := range takes {
		charges := make([]store.Charge, store.MaxCharges)
		for j := range charges {
			charges[j] = store.Charge{Key: fmt.Sprintf("%04d %04d", i, j), Limit: l, Cost: bucket.Token}
		}
		if _, ok, err := s.Take(t.Context(), nil, charges, mete.Mode{}); !ok || err != nil {
			t.Fatal(ok, err)
		}
	}
	if got, want := rows(t, config), takes*store.MaxCharges; got != want {
		t.Fatalf("%d rows, want %d", got, want)
	}
	if err := s.Clear(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := rows(t, config); got != 0 {
		t.Errorf("%d rows are left", got)
	}
}
