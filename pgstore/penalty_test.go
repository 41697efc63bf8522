// SPDX-License-Identifier: Apache-2.0

package pgstore_test

import (
	"testing"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/pgstore"
	"github.com/metehq/mete/store"
	"github.com/metehq/mete/storetest"
)

func TestStore_Penalties(t *testing.T) {
	t.Parallel()
	for name, config := range map[string]pgstore.Config{"unlogged": {}, "durable": {Durable: true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := newPool(t)
			config.Schema = migrated(t, pool)
			prefix := prefixes()
			storetest.RunPenalties(t, func(t *testing.T, now func() bucket.Instant) mete.Store {
				config := config
				config.Now, config.Prefix, config.Timeout = now, prefix(), awhile
				return open(t, pool, config)
			})
		})
	}
}

// A penalty is a row until it expires, denials during it write nothing, and a rolled back take starts none.
func TestPenalty_Row(t *testing.T) {
	t.Parallel()
	pool := newPool(t)
	schema := migrated(t, pool)
	s := open(t, pool, pgstore.Config{Schema: schema, Timeout: awhile})
	l, err := bucket.NewLimit(bucket.Token, bucket.Rate{Tokens: bucket.Token, Per: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	p, err := bucket.NewPenalty(100*time.Second, 1000*time.Second, 2*bucket.Token)
	if err != nil {
		t.Fatal(err)
	}
	charges := []store.Charge{{Key: "k", Limit: l, Cost: bucket.Token, Penalty: p}}
	count := func() (n int) {
		err := pool.QueryRow(t.Context(), "SELECT count(*) FROM "+schema+".bucket_view WHERE kind = 'penalty'").Scan(&n)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	row := func() (text string) {
		err := pool.QueryRow(t.Context(), "SELECT xmin::text || ctid::text || log::text FROM "+schema+".bucket WHERE lim LIKE 'penalty%'").Scan(&text)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	take := func(s mete.Store) bool {
		t.Helper()
		_, allowed, err := s.Take(t.Context(), nil, charges, mete.Mode{})
		if err != nil {
			t.Fatal(err)
		}
		return allowed
	}
	if !take(s) || count() != 0 {
		t.Fatal("an admitted take wrote a penalty")
	}
	tx, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	snaps, allowed, err := s.TakeTx(t.Context(), tx, nil, charges, mete.Mode{})
	if err != nil || allowed || snaps[0].RetryAfter < 100*time.Second {
		t.Fatalf("in a transaction: %v, %v, %v", snaps, allowed, err)
	}
	if err := tx.Rollback(t.Context()); err != nil || count() != 0 {
		t.Fatalf("%v, %d penalties after a rollback", err, count())
	}
	if take(s) || count() != 1 {
		t.Fatal("a denial started no penalty")
	}
	before := row()
	for range 20 {
		take(s)
	}
	if after := row(); after != before {
		t.Errorf("denials changed the row from %s to %s", before, after)
	}
	if err := s.Reset(t.Context(), []string{"k"}); err != nil || count() != 0 {
		t.Errorf("after a reset: %v, %d penalties", err, count())
	}
}
