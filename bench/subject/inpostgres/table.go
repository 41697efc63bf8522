// SPDX-License-Identifier: Apache-2.0

package inpostgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/metehq/mete/bench/subject"
)

// table is the table of the rivals in this package, tuned as well as we can. A bucket is its missing tokens,
// in microseconds of refill, at an instant in microseconds since 1970. Half of each page is free for updates,
// which then need no index entry.
const table = `CREATE %s TABLE bucket (
	key   text   NOT NULL PRIMARY KEY,
	spent bigint NOT NULL,
	as_of bigint NOT NULL
) WITH (fillfactor = 50)`

// clock is the time of the server in microseconds since 1970.
const clock = `(extract(epoch FROM clock_timestamp()) * 1000000)::bigint`

// open creates the table and returns a pool of the given size with pgx's default settings, which include
// prepared statements.
func open(ctx context.Context, at Place) (*pgxpool.Pool, error) {
	config, err := pgxpool.ParseConfig(at.URL)
	if err != nil {
		return nil, err
	}
	config.MaxConns = int32(at.Connections)
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, err
	}
	kind := "UNLOGGED"
	if at.Logged {
		kind = ""
	}
	if _, err := pool.Exec(ctx, fmt.Sprintf(table, kind)); err != nil {
		pool.Close()
		return nil, err
	}
	return pool, nil
}

// price returns a token and a full bucket in the units of the table.
func price(q subject.Quota) (token, full int64) {
	token = q.Every.Microseconds()
	return token, token * int64(q.Capacity)
}
