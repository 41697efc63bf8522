// SPDX-License-Identifier: Apache-2.0

package pgstore_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/testseed"
	"github.com/metehq/mete/pgstore"
	"github.com/metehq/mete/store"
)

// TestTake_UpdatesStayInTheirPage counts HOT updates, which add no index entry.
func TestTake_UpdatesStayInTheirPage(t *testing.T) {
	hour := bucket.Rate{Tokens: 1_000_000 * bucket.Token, Per: time.Hour}
	plain := compiled(t, bucket.Spec{Capacity: hour.Tokens, Rate: hour})
	fixed := compiled(t, bucket.Spec{Algorithm: bucket.AlgorithmStepped, Capacity: hour.Tokens, Rate: hour})
	window := compiled(t, bucket.Spec{Algorithm: bucket.AlgorithmSlidingWindow, Rate: hour})
	log := compiled(t, bucket.Spec{Algorithm: bucket.AlgorithmSlidingLog, Rate: bucket.Rate{Tokens: bucket.MaxLogTokens, Per: time.Hour}})
	for _, tt := range []struct {
		name   string
		laps   int // per caller
		limits []bucket.Limit
	}{
		{"one limit", 2600, []bucket.Limit{plain}},
		{"three limits", 400, []bucket.Limit{plain, plain, plain}},
		{"windows", 300, []bucket.Limit{fixed, window}},
		{"log", 300, []bucket.Limit{log}},
	} {
		for _, durable := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, durable %v", tt.name, durable), func(t *testing.T) {
				isHot(t, tt.laps, tt.limits, durable)
			})
		}
	}
}

// isHot takes from buckets of users. A tenth of them shares a bucket of the next limit, and so on.
func isHot(t *testing.T, laps int, limits []bucket.Limit, durable bool) {
	const callers, keys = 8, 1000
	pool := newPool(t)
	schema := migrated(t, pool)
	own := poolNamed(t, schema)
	s := open(t, own, pgstore.Config{Schema: schema, Durable: durable, Timeout: awhile})
	var all sync.WaitGroup
	for g := range callers {
		r := rand.New(testseed.PCG(uint64(g), 11))
		all.Go(func() {
			for range laps {
				k := r.IntN(keys)
				var charges []store.Charge
				for i, l := range limits {
					charges = append(charges, store.Charge{Key: fmt.Sprintf("%d:%04d", i, k), Limit: l, Cost: bucket.Token})
					k /= 10
				}
				if _, allowed, err := s.Take(context.Background(), nil, charges, mete.Mode{}); err != nil || !allowed {
					t.Errorf("%v: allowed %v, %v", charges, allowed, err)
					return
				}
			}
		})
	}
	all.Wait()
	gone(t, own)
	table := map[bool]string{false: "bucket", true: "bucket_durable"}[durable]
	const of = " FROM pg_stat_user_tables WHERE schemaname = $1 AND relname = $2"
	updated, hot := number(t, pool, "SELECT n_tup_upd"+of, schema, table), number(t, pool, "SELECT n_tup_hot_upd"+of, schema, table)
	if least := int64(callers * laps * len(limits) / 2); updated < least || hot < updated*95/100 {
		t.Errorf("%d of %d updates are HOT, want 95 %% of %d and more", hot, updated, least)
	}
}

// TestMigrate_NoIndexButTheKey proves the condition for HOT updates.
func TestMigrate_NoIndexButTheKey(t *testing.T) {
	pool := newPool(t)
	schema := migrated(t, pool)
	for _, table := range []string{"bucket", "bucket_durable", "bucket_memory", "bucket_durable_memory"} {
		const sql = "SELECT string_agg(a.attname, ' ') FROM pg_index i JOIN pg_attribute a ON a.attrelid = i.indexrelid WHERE i.indrelid = ($1 || '.' || $2)::regclass"
		got := lines(t, pool, sql, schema, table)
		want := "key"
		if table != "bucket" && table != "bucket_durable" {
			want = "id"
		}
		if len(got) != 1 || got[0] != want {
			t.Errorf("%s has indexes on %q, want one on %s", table, got, want)
		}
	}
}
