// SPDX-License-Identifier: Apache-2.0

package pgstore

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/metehq/mete/internal/presence"
	"github.com/metehq/mete/pgstore/internal/nodes"
	"github.com/metehq/mete/pgstore/internal/pools"
)

const (
	// verifyTimeout is how long a server may take to say what it is, connecting
	// included.
	verifyTimeout = 10 * time.Second

	// minVersion is the first version of PostgreSQL that will do, as it writes it.
	minVersion = 14_00_00
)

// A Node is a [Store] with connections of its own, which knows how many others
// there are. [Open] and [Connect] make it.
type Node struct {
	*Store
	presence *presence.Presence
	close    func() error
}

// Open is [ParseURL] and then [Connect].
func Open(ctx context.Context, rawURL string) (*Node, error) {
	options, config, err := ParseURL(rawURL)
	if err != nil {
		return nil, err
	}
	return Connect(ctx, options, config)
}

// Connect connects to a PostgreSQL, makes missing tables, as [Migrate] does, and joins
// the nodes there. It does not change options, which [ParseURL] or pgx must have made. If
// no server answers, the error wraps [store.ErrUnavailable]. Connect tries once, for as
// long as ctx lasts.
func Connect(ctx context.Context, options *pgxpool.Config, config Config) (*Node, error) {
	pool, err := Dial(ctx, options.Copy())
	if err != nil {
		return nil, err
	}
	n, err := open(ctx, pool, config)
	if err != nil {
		pool.Close()
		return nil, pools.Unanswered(err)
	}
	n.close = sync.OnceValue(n.end)
	return n, nil
}

func open(ctx context.Context, pool *pgxpool.Pool, config Config) (*Node, error) {
	if err := Migrate(ctx, pool, config.Schema); err != nil {
		return nil, err
	}
	store, err := New(pool, config)
	if err != nil {
		return nil, err
	}
	p, err := nodes.Join(ctx, pool, nodes.Config{Schema: store.config.Schema, Prefix: config.Prefix, ID: rand.Text()})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("pgstore: %w", err), store.Close())
	}
	return &Node{Store: store, presence: p}, nil
}

// Nodes is how many nodes share the store's buckets, this one included: the most
// that were seen in the last three beats, each of which is 5 s long. While
// PostgreSQL does not answer it stays what it was.
func (n *Node) Nodes() int { return n.presence.Nodes() }

// Close ends the store, leaves the other nodes and closes the connections. What
// is asked later fails.
func (n *Node) Close() error { return n.close() }

func (n *Node) end() error {
	err := n.Store.Close()
	n.presence.Close()
	pools.Close(n.pool)
	return err
}

// Dial is [pgxpool.NewWithConfig], and sees that what answers will do: PostgreSQL
// 14 or later, and no standby. Where nothing answers, the error wraps
// [store.ErrUnavailable]. The pool is the caller's. It takes no longer than 10 s.
func Dial(ctx context.Context, options *pgxpool.Config) (*pgxpool.Pool, error) {
	pool, err := pgxpool.NewWithConfig(ctx, options)
	if err != nil {
		return nil, fmt.Errorf("pgstore: connect: %w", err)
	}
	if err := verify(ctx, pool); err != nil {
		pool.Close()
		return nil, fmt.Errorf("pgstore: connect: %w", pools.Unanswered(err))
	}
	return pool, nil
}

// verify asks the server what it is: so it is said at the start, and not with
// the first take.
func verify(ctx context.Context, pool *pgxpool.Pool) error {
	const sql = "SELECT pg_catalog.current_setting('server_version_num')::pg_catalog.int4, pg_catalog.current_setting('server_version'), pg_catalog.pg_is_in_recovery()"
	ctx, cancel := context.WithTimeout(ctx, verifyTimeout)
	defer cancel()
	var version int
	var text string
	var standby bool
	err := pool.QueryRow(ctx, sql, pgx.QueryExecModeExec).Scan(&version, &text, &standby)
	switch {
	case err != nil:
		return err
	case standby:
		return pools.ErrStandby
	case version < minVersion:
		return fmt.Errorf("there is PostgreSQL %s: it must be 14 or later", text)
	}
	return nil
}
