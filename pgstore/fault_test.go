// SPDX-License-Identifier: Apache-2.0

package pgstore_test

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/faulttest"
	"github.com/metehq/mete/pgstore"
	"github.com/metehq/mete/store"
)

// slack is the tolerance for delays of a busy machine.
const slack = 200 * time.Millisecond

// faultLimit refills so slowly that an empty bucket is not full by the end of any fault, even on a slow machine.
// All spending then shows exactly. A bucket of vastLimit admits everything, so that faults hit during writes.
// Buckets of slowLimit and ampleLimit refill less than a token during an assertion.
var (
	faultLimit = faulttest.Limit(400, bucket.PerSecond(2*bucket.Token))
	vastLimit  = faulttest.Limit(1_000_000, bucket.PerSecond(10*bucket.Token))
	slowLimit  = faulttest.Limit(200, bucket.Rate{Tokens: bucket.Token, Per: 1000 * time.Hour})
	ampleLimit = faulttest.Limit(100_000, bucket.Rate{Tokens: bucket.Token, Per: 1000 * time.Second})
)

// chargesOf returns charges of a token each, from buckets of faultLimit, vastLimit or ampleLimit by their keys.
// The keys are sorted.
func chargesOf(keys ...string) []store.Charge {
	var charges []store.Charge
	for _, k := range keys {
		c := store.Charge{Key: k, Limit: faultLimit, Cost: bucket.Token}
		if strings.Contains(k, "vast") {
			c.Limit = vastLimit
		}
		if strings.Contains(k, "ample") {
			c.Limit = ampleLimit
		}
		charges = append(charges, c)
	}
	return charges
}

func slowCharges(keys ...string) []store.Charge {
	charges := chargesOf(keys...)
	for i := range charges {
		charges[i].Limit = slowLimit
	}
	return charges
}

// A place is a schema of a server, with a store that may use a proxy.
type place struct {
	t     *testing.T
	url   string // a direct connection
	table string
	pool  *pgxpool.Pool // the store's
	store *pgstore.Store
}

// at migrates and connects like [pgstore.Open], through another address if there is one.
func at(t *testing.T, url, way string, config pgstore.Config) *place {
	t.Helper()
	p := &place{t: t, url: url, table: "mete.bucket"}
	if config.Durable {
		p.table = "mete.bucket_durable"
	}
	direct, err := pgxpool.New(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer direct.Close()
	if err := pgstore.Migrate(t.Context(), direct, ""); err != nil {
		t.Fatal(err)
	}
	if way == "" {
		way = url
	}
	options, _, err := pgstore.ParseURL(way)
	if err != nil {
		t.Fatal(err)
	}
	p.pool, err = pgstore.Dial(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.pool.Close)
	p.store = open(t, p.pool, config)
	return p
}

// behind returns url with a proxy's address.
func behind(url, addr string) string {
	_, database, _ := strings.Cut(strings.TrimPrefix(url, "postgres://postgres@"), "/")
	return "postgres://postgres@" + addr + "/" + database
}

// do runs statements on a direct connection, and returns the rows as text.
func (p *place) do(sql string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), faulttest.Patience)
	defer cancel()
	conn, err := pgx.Connect(ctx, p.url)
	if err != nil {
		return "", err
	}
	defer conn.Close(ctx)
	results, err := conn.PgConn().Exec(ctx, sql).ReadAll()
	var lines []string
	for _, r := range results {
		for _, row := range r.Rows {
			lines = append(lines, string(bytes.Join(row, []byte("|"))))
		}
	}
	return strings.Join(lines, "\n"), err
}

// must is do for statements that cannot fail.
func (p *place) must(sql string) string {
	p.t.Helper()
	text, err := p.do(sql)
	if err != nil {
		p.t.Fatalf("%s: %v", sql, err)
	}
	return text
}

// take takes once.
func (p *place) take(charges []store.Charge, mode mete.Mode) (bool, error) {
	_, allowed, err := p.store.Take(p.t.Context(), nil, charges, mode)
	return allowed, err
}

// charged returns the number of takes missing from a bucket that does not refill.
func (p *place) charged(key string) int64 {
	p.t.Helper()
	s := p.state(key)
	unit := int64(bucket.Token) * max(s.Unit, 1)
	return (s.Spent + unit - 1) / unit
}

// state reads a bucket's state from the table, as an operator would. A bucket without a row is full.
func (p *place) state(key string) (s bucket.State) {
	p.t.Helper()
	row := p.must("SELECT spent, split_part(lim, ',', 4), as_of FROM " + p.table + " WHERE key = '" + key + "'")
	if row == "" {
		return s
	}
	if _, err := fmt.Sscanf(row, "%d|%d|%d", &s.Spent, &s.Unit, &s.AsOf); err != nil {
		p.t.Fatalf("state %q of %q: %v", row, key, err)
	}
	return s
}

// holding runs a statement in a transaction that lasts until release.
func (p *place) holding(sql string) (release func()) {
	p.t.Helper()
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, p.url)
	if err == nil {
		_, err = conn.Exec(ctx, "BEGIN; "+sql, pgx.QueryExecModeSimpleProtocol)
	}
	if err != nil {
		p.t.Fatalf("%s: %v", sql, err)
	}
	return func() {
		if err := conn.Close(ctx); err != nil {
			p.t.Error(err)
		}
	}
}

func poolOf(t *testing.T, config *pgxpool.Config) *pgxpool.Pool {
	t.Helper()
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pool
}

// startTraffic lets takers take.
func startTraffic(t *testing.T, p *place, takers []*faulttest.Taker) *faulttest.Traffic {
	t.Helper()
	return faulttest.Start(t, faulttest.Place{Store: p.store, Name: "pgstore", Slack: slack, State: p.state}, takers)
}

// plainAndOthers are takers of all kinds: two for each.
func plainAndOthers() []*faulttest.Taker {
	var all []*faulttest.Taker
	for range 2 {
		all = append(all, &faulttest.Taker{Charges: chargesOf("plain")}, &faulttest.Taker{Charges: chargesOf("id"), IDs: true},
			&faulttest.Taker{Charges: chargesOf("one", "other")}, &faulttest.Taker{Charges: chargesOf("all:id", "id"), IDs: true},
			&faulttest.Taker{Charges: chargesOf("vast")}, &faulttest.Taker{Charges: chargesOf("vast:2")},
			&faulttest.Taker{Charges: chargesOf("vast", "vast:3")}, &faulttest.Taker{Charges: chargesOf("vast:2", "vast:id"), IDs: true})
	}
	return all
}
