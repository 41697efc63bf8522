// SPDX-License-Identifier: Apache-2.0

// Package nodes registers the nodes that share buckets in PostgreSQL, for [presence.Join].
package nodes

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/metehq/mete/internal/presence"
	"github.com/metehq/mete/pgstore/internal/schema"
)

// beatSQL registers a node and returns the number of other nodes. A node locks its own row first and then waits
// for no other lock, so nodes cannot deadlock. It ignores timestamps too far in the future, which come from a
// wrong clock. It removes its prefix's ignored and expired rows, and after a day, the rows of any prefix.
//
// Names and operators are qualified, so that the session's search_path has no effect.
const beatSQL = `
WITH clock AS MATERIALIZED (
	SELECT t.now, t.now OPERATOR(pg_catalog.-) t.life AS since, t.now OPERATOR(pg_catalog.+) t.life AS until,
		t.now OPERATOR(pg_catalog.-) pg_catalog.make_interval(days => 1) AS yesterday, t.now OPERATOR(pg_catalog.+) pg_catalog.make_interval(days => 1) AS tomorrow
	FROM (SELECT pg_catalog.clock_timestamp() AS now, pg_catalog.make_interval(secs => $3::pg_catalog.float8) AS life) AS t
), mine AS (
	INSERT INTO {schema}.node AS n (prefix, id, seen) SELECT $1::pg_catalog.bytea, $2::pg_catalog.text, now FROM clock
	ON CONFLICT (prefix, id) DO UPDATE SET seen = excluded.seen
	RETURNING id
), gone AS (
	DELETE FROM {schema}.node AS old USING (
		SELECT n.prefix, n.id FROM {schema}.node AS n, clock, mine
		WHERE n.id OPERATOR(pg_catalog.<>) mine.id AND (
			n.prefix OPERATOR(pg_catalog.=) $1::pg_catalog.bytea AND (n.seen OPERATOR(pg_catalog.<) since OR n.seen OPERATOR(pg_catalog.>) until)
			OR n.seen OPERATOR(pg_catalog.<) yesterday OR n.seen OPERATOR(pg_catalog.>) tomorrow)
		FOR UPDATE OF n SKIP LOCKED) AS dead
	WHERE old.prefix OPERATOR(pg_catalog.=) dead.prefix AND old.id OPERATOR(pg_catalog.=) dead.id
)
SELECT pg_catalog.count(*) FROM {schema}.node AS n, clock
WHERE n.prefix OPERATOR(pg_catalog.=) $1::pg_catalog.bytea AND n.id OPERATOR(pg_catalog.<>) $2::pg_catalog.text
	AND n.seen OPERATOR(pg_catalog.>=) since AND n.seen OPERATOR(pg_catalog.<=) until`

const leaveSQL = `DELETE FROM {schema}.node WHERE prefix OPERATOR(pg_catalog.=) $1::pg_catalog.bytea AND id OPERATOR(pg_catalog.=) $2::pg_catalog.text`

type Config struct {
	// Schema contains the table node, and Prefix is common to all nodes.
	Schema, Prefix string

	// ID is unique among the nodes.
	ID string

	// Every is the interval between two heartbeats, a millisecond or more. It must be the same for all nodes. 0
	// is [presence.DefaultHeartbeat].
	Every time.Duration
}

// Join registers a node at intervals, as [presence.Join] does.
func Join(ctx context.Context, pool *pgxpool.Pool, config Config) (*presence.Presence, error) {
	return presence.Join(ctx, table{pool, config}, config.Every)
}

// A table implements [presence.Nodes] with the rows of the table node that have one prefix.
type table struct {
	pool   *pgxpool.Pool
	config Config
}

func (n table) Heartbeat(ctx context.Context, life time.Duration) (int64, error) {
	var others int64
	row := n.pool.QueryRow(ctx, schema.Qualify(beatSQL, n.config.Schema), pgx.QueryExecModeExec, []byte(n.config.Prefix), n.config.ID, life.Seconds())
	err := row.Scan(&others)
	return others + 1, err
}

func (n table) Leave(ctx context.Context) error {
	_, err := n.pool.Exec(ctx, schema.Qualify(leaveSQL, n.config.Schema), pgx.QueryExecModeExec, []byte(n.config.Prefix), n.config.ID)
	return err
}
