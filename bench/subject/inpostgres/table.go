// SPDX-License-Identifier: Apache-2.0

package inpostgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/metehq/mete/bench/subject"
)

// table is that of the rivals written here, as good as we can make it. A bucket
// is what it lacks of being full, in microseconds of refill, as of an instant in
// microseconds since 1970. Half of each page is left for the updates of its rows,
// which then need no entry in the index.
const table = `CREATE %s TABLE bucket (
	key   text   NOT NULL PRIMARY KEY,
	spent bigint NOT NULL,
	as_of bigint NOT NULL
) WITH (fillfactor = 50)`

// clock is the server's, in microseconds since 1970.
const clock = `(extract(epoch FROM clock_timestamp()) * 1000000)::bigint`

// open makes the table, and returns a pool with the settings that pgx comes with,
// prepared statements among them, but for its size.
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

// price returns a token and a full bucket in the table's units.
func price(q subject.Quota) (token, full int64) {
	token = q.Every.Microseconds()
	return token, token * int64(q.Capacity)
}
