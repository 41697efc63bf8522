// SPDX-License-Identifier: Apache-2.0

package redisstore_test

import (
	"errors"
	"fmt"
	"regexp"
	"testing"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/proctest"
	"github.com/metehq/mete/redisstore"
	"github.com/metehq/mete/store"
)

// A bucket has at most bucket.MaxHolds holds, and a settled one no longer counts. The test writes all but one of them into
// its history, because so many calls take a while.
func TestHold_BoundOfABucket(t *testing.T) {
	t.Parallel()
	client := connect(t, proctest.StartRedis(t).Addr)
	s := open(t, client, redisstore.Config{})
	l, err := bucket.NewLimit(1000*bucket.Token, bucket.PerSecond(bucket.Token))
	if err != nil {
		t.Fatal(err)
	}
	made := 0
	hold := func() error {
		made++
		h := store.Hold{ID: fmt.Sprintf("hold%016d", made), TTL: time.Hour, Terms: make([]store.Terms, 1)}
		_, _, err := s.Hold(t.Context(), nil, []store.Charge{{Key: "k", Limit: l, Cost: bucket.Token}}, mete.Mode{}, h)
		return err
	}
	if err := hold(); err != nil {
		t.Fatal(err)
	}
	keys, err := client.Do(t.Context(), client.B().Keys().Pattern("*k").Build()).AsStrSlice()
	if err != nil || len(keys) != 1 {
		t.Fatalf("rows %q, error %v; want one", keys, err)
	}
	row, err := client.Do(t.Context(), client.B().Get().Key(keys[0]).Build()).ToString()
	if err != nil {
		t.Fatal(err)
	}
	count := regexp.MustCompile(`(held [^\n]*),1 (\d+:)`)
	if !count.MatchString(row) {
		t.Fatalf("the row %q has no history with one hold", row)
	}
	row = count.ReplaceAllString(row, fmt.Sprintf("${1},%d ${2}", bucket.MaxHolds-1))
	if err := client.Do(t.Context(), client.B().Set().Key(keys[0]).Value(row).Build()).Error(); err != nil {
		t.Fatal(err)
	}
	if err := hold(); err != nil {
		t.Errorf("the last hold within the bound: %v", err)
	}
	for settled := range 3 {
		if err := hold(); !errors.Is(err, store.ErrTooManyHolds) || store.Spent(err) != store.NotSpent {
			t.Errorf("one hold more, after %d settlements: %v, want it refused", settled, err)
		}
		status, err := s.Settle(t.Context(), fmt.Sprintf("hold%016d", []int{1, 2, 4}[settled]), 0)
		if err != nil || !status.Settled {
			t.Errorf("settle: %+v, error %v", status, err)
		}
		if err := hold(); err != nil {
			t.Errorf("a hold after a settlement: %v", err)
		}
	}
}
