// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/proctest"
	"github.com/metehq/mete/pgstore"
	"github.com/metehq/mete/store"
)

// Every scripted replay reports the same with buckets in PostgreSQL. It leaves only the buckets that other
// clients use.
func TestReplay_TheSameInPostgres(t *testing.T) {
	p := proctest.StartPostgres(t)
	url := p.URL() + "&schema=limits&prefix=live:&timeout=1m"
	replay := func(store, pattern string, least int) {
		t.Run(pattern, func(t *testing.T) { replayAll(t, store, pattern, least) }) // who changes the directory
	}
	replay(url, "replay_*.txt", 8)
	left(t, p, "bucket", "0")
	inUse, err := pgstore.Open(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer inUse.Close()
	limit, err := bucket.NewLimit(10*bucket.Token, bucket.Rate{Tokens: bucket.Token, Per: 1e12})
	if err != nil {
		t.Fatal(err)
	}
	charges := []store.Charge{{Key: "per-key:k1", Limit: limit, Cost: bucket.Token}}
	if _, ok, err := inUse.Take(t.Context(), nil, charges, mete.Mode{}); !ok || err != nil {
		t.Fatalf("take: %t, %v", ok, err)
	}
	replay(url, "replay_[amt]*.txt", 3)
	left(t, p, "bucket", "1")
	replay(url+"&durable=true", "replay_[amt]*.txt", 3)
	left(t, p, "bucket_durable", "0")
	left(t, p, "bucket", "1")
}

// left is that so many rows are left in a table.
func left(t *testing.T, p *proctest.Postgres, table, want string) {
	t.Helper()
	if got, err := p.Psql("SELECT count(*) FROM limits." + table); err != nil || got != want {
		t.Errorf("%s rows are left in %s, %v, want %s", got, table, err, want)
	}
}
