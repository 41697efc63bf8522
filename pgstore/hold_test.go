// SPDX-License-Identifier: Apache-2.0

package pgstore_test

import (
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/pgstore"
	"github.com/metehq/mete/store"
)

// A bucket has at most bucket.MaxHolds holds. All but three are written into its history, because so many calls take a
// minute.
func TestHold_BoundOfABucket(t *testing.T) {
	t.Parallel()
	pool := newPool(t)
	schema := migrated(t, pool)
	s := open(t, pool, pgstore.Config{Schema: schema, SweepEvery: -1})
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
	tag, err := pool.Exec(t.Context(), fmt.Sprintf(`UPDATE %[1]s.bucket SET others = ARRAY(
		SELECT ROW(o.lim, o.spent, o.as_of, o.prev, o.log[1:5] || %[2]d::bigint)::%[1]s.account FROM unnest(others) AS o)`, schema, bucket.MaxHolds-1))
	if err != nil || tag.RowsAffected() != 1 {
		t.Fatalf("%d rows, error %v; want the history of one row", tag.RowsAffected(), err)
	}
	if err := hold(); err != nil {
		t.Errorf("the last hold within the bound: %v", err)
	}
	if err := hold(); !errors.Is(err, store.ErrTooManyHolds) || store.Spent(err) != store.NotSpent {
		t.Errorf("one hold more: %v, want it refused", err)
	}
	status, err := s.Settle(t.Context(), "hold0000000000000002", 0)
	if err != nil || !status.Settled {
		t.Errorf("settle: %+v, error %v", status, err)
	}
	if err := hold(); err != nil {
		t.Errorf("a hold after a settlement: %v", err)
	}
}

// A reader of the database must not be able to settle a hold: no column contains its ID.
func TestHold_TheIDIsSecret(t *testing.T) {
	t.Parallel()
	pool := newPool(t)
	schema := migrated(t, pool)
	s := open(t, pool, pgstore.Config{Schema: schema, SweepEvery: -1})
	l, err := bucket.NewLimit(10*bucket.Token, bucket.Rate{Tokens: bucket.Token, Per: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	for i, refund := range []bool{false, true} {
		h := store.Hold{ID: fmt.Sprintf("secret%016d", i), TTL: time.Hour, Refund: refund, Terms: make([]store.Terms, 1)}
		if _, id, err := s.Hold(t.Context(), nil, []store.Charge{{Key: "k", Limit: l, Cost: bucket.Token}}, mete.Mode{}, h); err != nil || id == "" {
			t.Fatalf("id %q, error %v", id, err)
		}
	}
	for table, want := range map[string]int{"bucket": 1, "bucket_hold": 2, "bucket_hold_due": 1, "bucket_memory": 0} {
		rows, err := pool.Query(t.Context(), fmt.Sprintf("SELECT r::text FROM %s.%s r", schema, table))
		if err != nil {
			t.Fatal(err)
		}
		texts, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil || len(texts) != want {
			t.Errorf("table %s has the rows %q, error %v; want %d rows", table, texts, err, want)
		}
		for _, text := range texts {
			if strings.Contains(text, "secret") || strings.Contains(text, hex.EncodeToString([]byte("secret"))) {
				t.Errorf("table %s: %s contains the ID of a hold", table, text)
			}
		}
	}
}

// The first call for a hold lacks windows, and the second call finds that the ID belongs to other buckets. The refusal must end
// the calls.
func TestHold_RefusedAfterWindows(t *testing.T) {
	t.Parallel()
	pool := newPool(t)
	now := bucket.At(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	s := open(t, pool, pgstore.Config{Schema: migrated(t, pool), SweepEvery: -1, Now: func() bucket.Instant { return now }})
	day, _, err := bucket.Spec{
		Algorithm: bucket.AlgorithmStepped, Anchor: bucket.AnchorCalendar, Calendar: bucket.Calendar{Window: bucket.CalendarDay, Zone: "UTC"},
		Rate: bucket.Rate{Tokens: 10 * bucket.Token, Per: bucket.CalendarDay.Length()}, Capacity: 10 * bucket.Token,
	}.Compile()
	if err != nil {
		t.Fatal(err)
	}
	plain, err := bucket.NewLimit(10*bucket.Token, bucket.Rate{Tokens: bucket.Token, Per: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	hold := func(id, key string, l bucket.Limit, ttl time.Duration) error {
		h := store.Hold{ID: id, TTL: ttl, Refund: true, Terms: make([]store.Terms, 1)}
		_, _, err := s.Hold(t.Context(), nil, []store.Charge{{Key: key, Limit: l, Cost: bucket.Token}}, mete.Mode{}, h)
		return err
	}
	if err := hold("hold0000000000000001", "a", plain, 7*24*time.Hour); err != nil {
		t.Fatal(err)
	}
	if err := hold("hold0000000000000002", "b", day, time.Hour); err != nil {
		t.Fatal(err)
	}
	now = now.Add(2 * time.Hour)
	// The call has another limit, so it lacks the windows for the refund of b's expired hold.
	if err := hold("hold0000000000000001", "b", plain, time.Hour); !errors.Is(err, store.ErrHoldKeys) {
		t.Errorf("error %v, want ErrHoldKeys", err)
	}
}
