// SPDX-License-Identifier: Apache-2.0

// Package presence lets nodes that use the same buckets in PostgreSQL know how many
// they are.
package presence

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/metehq/mete/pgstore/internal/schema"
)

// DefaultBeat is how often a node says that it is there.
const DefaultBeat = 5 * time.Second

// minTimeout is how long one beat may take, or as long as until the next.
const minTimeout = time.Second

// missedBeats is after how many beats that did not come a node counts no more,
// and how many counts the highest is taken of: when PostgreSQL has crashed, it
// has forgotten the nodes, and the others need a beat to be seen again.
const missedBeats = 3

// beatSQL says that a node is there, and returns how many others are. A node
// locks its own row first, and waits for no lock after that: so nodes never wait
// for each other in a circle. What is seen further ahead than it could have been
// seen before, another clock has written. What nobody counts is removed, in the
// end also where no node is left to do it.
//
// Names and operators are qualified: the session's search_path makes no difference.
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

// A Config says who a node is.
type Config struct {
	// Schema is where the table node is, and Prefix what the nodes have in common.
	Schema, Prefix string

	// ID tells the node apart from the others.
	ID string

	// Every is the time between two beats, which must be the same for all nodes, and
	// a millisecond at least. 0 is [DefaultBeat].
	Every time.Duration
}

// A Presence is a node among others that use the same buckets. It says at
// intervals that it is there, and counts the others: for limits that are divided
// among the nodes while PostgreSQL does not answer. [Join] makes it; it is safe for
// concurrent use.
type Presence struct {
	pool   *pgxpool.Pool
	config Config
	count  atomic.Int64
	recent [missedBeats]int64 // counts; the goroutine's own
	next   int
	stop   context.CancelFunc
	ended  sync.WaitGroup
}

// Join begins to say every so often that a node is there. It says so once before it
// returns; its error is that of the first time. Later ones change nothing: the last
// count holds.
func Join(ctx context.Context, pool *pgxpool.Pool, config Config) (*Presence, error) {
	if config.Every == 0 {
		config.Every = DefaultBeat
	}
	if config.Every < time.Millisecond {
		return nil, fmt.Errorf("join: every %v: must be 0, or at least a millisecond", config.Every)
	}
	p := &Presence{pool: pool, config: config}
	if err := p.beat(ctx); err != nil {
		return nil, fmt.Errorf("join: %w", err)
	}
	ctx, p.stop = context.WithCancel(context.Background())
	p.ended.Go(func() { p.run(ctx) })
	return p, nil
}

// Nodes is how many nodes there are, this one included: the most that were seen
// in the last three beats. While PostgreSQL does not answer it stays what it was.
func (p *Presence) Nodes() int { return int(max(p.count.Load(), 1)) }

// Leave says that the node is gone, as long as ctx lasts, and ends its goroutine.
// It must be called once.
func (p *Presence) Leave(ctx context.Context) error {
	p.stop()
	p.ended.Wait()
	c := p.config
	if _, err := p.pool.Exec(ctx, schema.In(leaveSQL, c.Schema), pgx.QueryExecModeExec, []byte(c.Prefix), c.ID); err != nil {
		return fmt.Errorf("leave: %w", err)
	}
	return nil
}

func (p *Presence) run(ctx context.Context) {
	ticker := time.NewTicker(p.config.Every)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		_ = p.beat(ctx) // the next one follows
	}
}

// beat says that the node is there, and counts.
func (p *Presence) beat(ctx context.Context) error {
	c := p.config
	ctx, cancel := context.WithTimeout(ctx, max(c.Every, minTimeout))
	defer cancel()
	var others int64
	life := (missedBeats * c.Every).Seconds()
	row := p.pool.QueryRow(ctx, schema.In(beatSQL, c.Schema), pgx.QueryExecModeExec, []byte(c.Prefix), c.ID, life)
	if err := row.Scan(&others); err != nil {
		return err
	}
	p.recent[p.next%missedBeats] = others + 1
	p.next++
	p.count.Store(max(p.recent[0], p.recent[1], p.recent[2]))
	return nil
}
