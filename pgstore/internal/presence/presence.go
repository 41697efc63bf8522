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
const beatSQL = `
WITH clock AS MATERIALIZED (
	SELECT clock_timestamp() AS now, $3::bigint * interval '1 microsecond' AS life
), mine AS (
	INSERT INTO {schema}.node AS n (prefix, id, seen) SELECT $1::bytea, $2::text, now FROM clock
	ON CONFLICT (prefix, id) DO UPDATE SET seen = excluded.seen
	RETURNING id
), gone AS (
	DELETE FROM {schema}.node WHERE (prefix, id) IN (
		SELECT n.prefix, n.id FROM {schema}.node AS n, clock, mine
		WHERE n.id <> mine.id AND (n.prefix = $1::bytea AND NOT n.seen BETWEEN now - life AND now + life
			OR NOT n.seen BETWEEN now - interval '1 day' AND now + interval '1 day')
		FOR UPDATE OF n SKIP LOCKED)
)
SELECT count(*) FROM {schema}.node AS n, clock
WHERE n.prefix = $1::bytea AND n.id <> $2::text AND n.seen BETWEEN now - life AND now + life`

const leaveSQL = `DELETE FROM {schema}.node WHERE prefix = $1::bytea AND id = $2::text`

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
	life := (missedBeats * c.Every).Microseconds()
	row := p.pool.QueryRow(ctx, schema.In(beatSQL, c.Schema), pgx.QueryExecModeExec, []byte(c.Prefix), c.ID, life)
	if err := row.Scan(&others); err != nil {
		return err
	}
	p.recent[p.next%missedBeats] = others + 1
	p.next++
	p.count.Store(max(p.recent[0], p.recent[1], p.recent[2]))
	return nil
}
