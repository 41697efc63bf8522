// SPDX-License-Identifier: Apache-2.0

package pgstore_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/pgstore"
	"github.com/metehq/mete/store"
	"github.com/metehq/mete/storetest"
)

// TestTake_DenialWritesNothing denies takes through all paths. Once the store expects denials, it neither writes,
// locks nor inserts rows.
func TestTake_DenialWritesNothing(t *testing.T) {
	pool := newPool(t)
	schema := migrated(t, pool)
	own := poolNamed(t, schema)
	s := open(t, own, pgstore.Config{Schema: schema, SweepEvery: -1, Timeout: awhile})
	hour := bucket.Rate{Tokens: 5 * bucket.Token, Per: 1000 * time.Hour}
	var deny [][]store.Charge
	for i, spec := range []bucket.Spec{
		{Capacity: 5 * bucket.Token},
		{Algorithm: bucket.AlgorithmStepped, Capacity: 5 * bucket.Token},
		{Algorithm: bucket.AlgorithmSlidingWindow},
		{Algorithm: bucket.AlgorithmSlidingLog},
	} {
		spec.Rate = hour
		l := compiled(t, spec)
		key := fmt.Sprint("k", i)
		takes(t, s, of(l, 5, key), mete.Mode{})
		deny = append(deny, of(l, 1, key), of(l, 1, "a", key, "z"))
	}
	modes := []mete.Mode{{}, {UpTo: true}, {ID: "x"}, {MaxWait: time.Second}, {DryRun: true}}
	denyAll := func(laps int) {
		t.Helper()
		var all sync.WaitGroup
		for g := range 8 {
			all.Go(func() {
				for n := range laps {
					charges, mode := deny[(g+n)%len(deny)], modes[n%len(modes)]
					_, allowed, err := s.Take(context.Background(), nil, charges, mode)
					if err != nil || allowed {
						t.Errorf("%v %+v: allowed %v, %v; want denied", charges, mode, allowed, err)
					}
				}
			})
		}
		all.Wait()
	}
	denyAll(10) // from now on, the store expects denials
	rows := func() []string {
		t.Helper()
		return lines(t, pool, "SELECT convert_from(key, 'UTF8') || ' at ' || ctid::text || ' by ' || xmin::text || ', locked by ' || xmax::text FROM "+schema+".bucket ORDER BY key")
	}
	before := rows() // a lock changes xmax
	if len(before) != 4 {
		t.Errorf("%q: want 4 rows", before)
	}
	denyAll(200)
	if after := rows(); !slices.Equal(after, before) {
		t.Errorf("after denials there are %q, before them %q", after, before)
	}
	gone(t, own)
	const of = "SELECT n_tup_ins + n_tup_upd + n_tup_del FROM pg_stat_user_tables WHERE schemaname = $1 AND relname = $2"
	if got := number(t, pool, of, schema, "bucket"); got > 4+2*3*8*10 { // the first denials of several buckets inserted rows, and deleted them
		t.Errorf("%d rows were written", got)
	}
	if got := number(t, pool, of, schema, "bucket_memory"); got != 0 {
		t.Errorf("%d denials are remembered", got)
	}
}

// TestTake_NoRowOfADenial denies a store's first take, which has no first read: it leaves no row.
func TestTake_NoRowOfADenial(t *testing.T) {
	pool := newPool(t)
	schema := migrated(t, pool)
	l, small := tokens(t, 10, "1/1h"), tokens(t, 1, "1/1h")
	for _, mode := range []mete.Mode{{}, {ID: "x"}, {MaxWait: time.Millisecond}, {DryRun: true}, {DryRun: true, UpTo: true}} {
		s := open(t, pool, pgstore.Config{Schema: schema, SweepEvery: -1, Timeout: awhile})
		charges := append(of(l, 1, "a", "b"), of(small, 2, "c")...)
		if snaps, allowed := takes(t, s, charges, mode); allowed && !mode.UpTo {
			t.Errorf("%+v: %+v, want denied", mode, snaps)
		}
		if _, allowed := takes(t, s, of(small, 2, "c"), mode); allowed && !mode.UpTo {
			t.Errorf("%+v: want denied", mode)
		}
		if err := s.Refund(t.Context(), storetest.Refunds(charges...), ""); err != nil {
			t.Error(err)
		}
		if n := number(t, pool, "SELECT count(*) FROM "+schema+".bucket"); n != 0 {
			t.Errorf("%+v: %d rows are left, want none", mode, n)
		}
	}
}
