// SPDX-License-Identifier: Apache-2.0

package pgstore_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/proctest"
	"github.com/metehq/mete/pgstore"
	"github.com/metehq/mete/pgstore/internal/impostors"
	"github.com/metehq/mete/pgstore/internal/nodes"
	"github.com/metehq/mete/store"
	"github.com/metehq/mete/storetest"
)

// TestSearchPath puts a schema with copies of PostgreSQL's functions, operators and types before pg_catalog. No
// statement of the package, and no function in the schema, calls a copy.
func TestSearchPath(t *testing.T) {
	t.Parallel()
	p := proctest.StartPostgres(t)
	impostors.Install(t, p.Psql)
	url := p.URL()
	n := openURL(t, url+"&schema=mete&prefix=n")
	if _, err := n.DeriveKey(t.Context(), "test"); err != nil {
		t.Error(err)
	}
	if err := n.Ping(t.Context()); err != nil {
		t.Error(err)
	}
	pool := poolTo(t, url)
	for _, config := range []nodes.Config{{Schema: "mete", ID: "a"}, {Schema: "mete", ID: "b"}} {
		joined, err := nodes.Join(t.Context(), pool, config)
		if err != nil {
			t.Fatal(err)
		}
		if err := joined.Leave(t.Context()); err != nil {
			t.Error(err)
		}
	}
	prefix := prefixes()
	storetest.RunDocuments(t, func(t *testing.T) func() store.Documents {
		config := pgstore.Config{Prefix: prefix(), Timeout: awhile}
		return func() store.Documents { return open(t, pool, config) }
	})
	for _, durable := range []bool{false, true} {
		s := open(t, pool, pgstore.Config{Prefix: prefix(), Durable: durable, SweepEvery: time.Millisecond, Timeout: awhile})
		swept(t, s)
		everyWay(t, pool, s)
		everyAlgorithm(t, s)
		if err := s.Clear(t.Context()); err != nil {
			t.Error(err)
		}
		everyAlgorithm(t, s) // for the views
	}
	for _, statement := range []string{ // the triggers
		"INSERT INTO mete.rate_limit_rule (key_pattern, scope, rate_per_second, burst_capacity, plan) VALUES ('user:{user_id}', 'user', 1, 1, 'free')",
		"UPDATE mete.rate_limit_rule SET description = 'x'",
		"INSERT INTO mete.rate_limit_violation (bucket_key, rule_name) VALUES ('k', 'user-free')",
		"SELECT mete.rate_limit_violation_numbers(3)",
		"SELECT mete.rate_limit_violation_maintain(NULL, '30 days')",
		"SELECT * FROM mete.bucket_view",
		"SELECT * FROM mete.bucket_durable_view",
	} {
		if text, err := p.Psql(statement); err != nil {
			t.Errorf("%s: %s, %v", statement, text, err)
		}
	}
}

// everyAlgorithm takes from one bucket under limits of every algorithm in turn, and refunds the takes.
func everyAlgorithm(t *testing.T, s *pgstore.Store) {
	t.Helper()
	hour := bucket.Rate{Tokens: 10 * bucket.Token, Per: time.Hour}
	limits := []bucket.Limit{
		compiled(t, bucket.Spec{Capacity: 10 * bucket.Token, Rate: hour}),
		compiled(t, bucket.Spec{Capacity: bucket.Token, Rate: hour, Queue: 5 * bucket.Token}),
		compiled(t, bucket.Spec{Algorithm: bucket.AlgorithmStepped, Capacity: 10 * bucket.Token, Rate: hour}),
		compiled(t, bucket.Spec{Algorithm: bucket.AlgorithmStepped, Capacity: 10 * bucket.Token, Rate: hour, Anchor: bucket.AnchorFirst}),
		compiled(t, bucket.Spec{Algorithm: bucket.AlgorithmSlidingWindow, Rate: hour}),
		compiled(t, bucket.Spec{Algorithm: bucket.AlgorithmSlidingLog, Rate: hour}),
	}
	for i := range 2 * len(limits) * len(limits) {
		key := fmt.Sprint("one", i%3)
		c := of(limits[i%len(limits)], 1, key)
		snaps, _ := takes(t, s, c, mete.Mode{UpTo: i%5 == 0, ID: fmt.Sprint("id", i/2)})
		takes(t, s, of(limits[(i+i/7)%len(limits)], 2, key), mete.Mode{MaxWait: bucket.Forced})
		refund := mete.Refund{Charge: c[0], Taken: snaps[0].Taken()}
		for _, r := range []mete.Refund{refund, {Charge: c[0]}} {
			if err := s.Refund(t.Context(), []mete.Refund{r}, fmt.Sprint("id", i)); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// everyWay takes by the server's clock: one bucket and several, alone and together, denied, with a held lock, and
// in a transaction.
func everyWay(t *testing.T, pool *pgxpool.Pool, s *pgstore.Store) {
	t.Helper()
	few, lots := tokens(t, 3, "1/1h"), tokens(t, 1000, "1/1h")
	var all sync.WaitGroup
	for i := range 16 {
		all.Go(func() {
			for j := range 10 {
				takes(t, s, of(lots, 1, fmt.Sprint("k", j)), mete.Mode{})
				takes(t, s, of(few, 1, "few"), mete.Mode{})
				takes(t, s, of(lots, 1, "a", "b"), mete.Mode{ID: fmt.Sprint(i)})
				settles(t, s, of(lots, 2, fmt.Sprint("k", j)))
			}
		})
	}
	all.Wait()
	for range 3 {
		settles(t, s, of(lots, 2, "alone"))
	}
	tx, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(context.Background())
	if _, _, err := s.TakeTx(t.Context(), tx, nil, of(lots, 1, "a", "new"), mete.Mode{}); err != nil {
		t.Fatal(err)
	}
	short := mete.Mode{Within: 500 * time.Millisecond}
	for _, key := range []string{"a", "new"} { // is held
		if _, _, err := s.Take(t.Context(), nil, of(lots, 1, key), short); err == nil || strings.Contains(err.Error(), "impostor") {
			t.Errorf("%s is held: %v, want an error that says so", key, err)
		}
	}
	if err := tx.Commit(t.Context()); err != nil {
		t.Error(err)
	}
	if err := s.Reset(t.Context(), []string{"a", "b"}); err != nil {
		t.Error(err)
	}
}

// settles takes, and cancels a part of the take, as a request to a language model does.
func settles(t *testing.T, s *pgstore.Store, charges []store.Charge) {
	t.Helper()
	charges[0].Await = time.Minute
	snaps, _ := takes(t, s, charges, mete.Mode{})
	charges[0].Cost = bucket.Token
	if err := s.Refund(t.Context(), []mete.Refund{{Charge: charges[0], Taken: snaps[0].Taken()}}, ""); err != nil {
		t.Error(err)
	}
}
