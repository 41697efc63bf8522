// SPDX-License-Identifier: Apache-2.0

package pgstore_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/metehq/mete"
	"github.com/metehq/mete/internal/proctest"
	"github.com/metehq/mete/pgstore"
	"github.com/metehq/mete/storetest"
)

// TestPlans_OfAnEmptyTable plans all statements while the tables are empty, and known to be. When the tables have
// grown without new statistics, rows are still found by their keys.
func TestPlans_OfAnEmptyTable(t *testing.T) {
	t.Parallel()
	p := proctest.StartPostgres(t, "autovacuum=off")
	direct := poolTo(t, p.URL())
	schema := migrated(t, direct)
	run(t, direct, "VACUUM ANALYZE "+schema+".bucket, "+schema+".bucket_memory")

	options, err := pgxpool.ParseConfig(p.URL())
	if err != nil {
		t.Fatal(err)
	}
	options.MaxConns = 1
	options.ConnConfig.RuntimeParams["application_name"] = "planned"
	pool, err := pgxpool.NewWithConfig(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	s := open(t, pool, pgstore.Config{Schema: schema, Timeout: awhile, SweepEvery: -1})
	l := tokens(t, 3, "1/1000h")
	all := func(keep bool) {
		t.Helper()
		for i := range 12 {
			k := fmt.Sprint("k", i)
			for _, mode := range []mete.Mode{{}, {ID: k}, {ID: k}, {DryRun: true}} {
				takes(t, s, of(l, 1, k), mode)
				takes(t, s, of(l, 1, "a", k), mode)
			}
			if err := s.Refund(t.Context(), storetest.Refunds(of(l, 1, k)...), ""); err != nil {
				t.Error(err)
			}
			if keep && i > 0 {
				continue
			}
			if err := s.Reset(t.Context(), []string{"a", k}); err != nil {
				t.Error(err)
			}
			err := pgx.BeginFunc(context.Background(), direct, func(tx pgx.Tx) error {
				if _, _, err := s.TakeTx(t.Context(), tx, nil, of(l, 1, k), mete.Mode{}); err != nil {
					return err
				}
				return tx.Rollback(t.Context())
			})
			if err != nil && err != pgx.ErrTxClosed {
				t.Error(err)
			}
		}
	}
	all(false)
	run(t, direct, "TRUNCATE "+schema+".bucket_memory, "+schema+".bucket")
	run(t, direct, "VACUUM ANALYZE "+schema+".bucket, "+schema+".bucket_memory")
	all(false)
	for _, sql := range []string{
		"INSERT INTO %s.bucket (key, lim, spent, as_of, full_at) SELECT sha256(i::text::bytea), '', 1, 0, 1 FROM generate_series(1, 20000) i",
		"INSERT INTO %s.bucket_memory SELECT sha256(i::text::bytea), 0, 0, '{}', '{}' FROM generate_series(1, 20000) i",
	} {
		run(t, direct, fmt.Sprintf(sql, schema))
	}
	all(true)
	pool.Close()
	direct.Close()
	until(t, func() error { // statistics are complete when connections have left
		const others = "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"
		if n, err := p.Psql(others); n != "0" || err != nil {
			return fmt.Errorf("%s connections are there, %w", n, err)
		}
		return nil
	})
	const read = "SELECT sum(seq_tup_read) FROM pg_stat_user_tables WHERE relname IN ('bucket', 'bucket_memory')"
	if n, err := p.Psql(read); n != "0" || err != nil {
		t.Errorf("%s rows were read without an index, %v", n, err)
	}
}
