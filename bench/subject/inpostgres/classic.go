// SPDX-License-Identifier: Apache-2.0

package inpostgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/metehq/mete/bench/subject"
	"github.com/metehq/mete/bench/subject/remote"
)

// The statements between BEGIN and COMMIT. Each is a round trip. A denied take skips the last one.
const (
	classicEnsure = `INSERT INTO bucket VALUES ($1, 0, ` + clock + `) ON CONFLICT (key) DO NOTHING`
	classicLock   = `SELECT spent, as_of, ` + clock + ` FROM bucket WHERE key = $1 FOR UPDATE`
	classicWrite  = `INSERT INTO bucket VALUES ($1, $2, $3)
		ON CONFLICT (key) DO UPDATE SET spent = excluded.spent, as_of = excluded.as_of`
)

// newClassic is the usual token bucket in PostgreSQL: insert the row if it is missing, lock it, compute in
// the program, and write it back.
func newClassic(ctx context.Context, at Place, q subject.Quota) (remote.Limiter, error) {
	pool, err := open(ctx, at)
	if err != nil {
		return remote.Limiter{}, err
	}
	token, full := price(q)
	take := func(key string) (allowed bool, err error) {
		ctx := context.Background()
		err = pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
			if _, err := tx.Exec(ctx, classicEnsure, key); err != nil {
				return err
			}
			var spent, asOf, now int64
			if err := tx.QueryRow(ctx, classicLock, key).Scan(&spent, &asOf, &now); err != nil {
				return err
			}
			now = max(now, asOf)
			spent = max(spent-(now-asOf), 0) + token
			if allowed = spent <= full; !allowed {
				return nil
			}
			_, err := tx.Exec(ctx, classicWrite, key, spent, now)
			return err
		})
		return allowed && err == nil, err
	}
	return remote.Limiter{Caller: remote.FromSingle(take), Close: pool.Close}, nil
}
