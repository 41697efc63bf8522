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
	verifyTimeout = 10 * time.Second

	// minVersion is PostgreSQL 14 in the notation of server_version_num.
	minVersion = 14_00_00
)

// A Node is a [Store] with its own connections that also counts the other nodes. [Open] and [Connect] create it.
type Node struct {
	*Store
	presence *presence.Presence
	close    func() error
}

// Open is [ParseURL] followed by [Connect].
func Open(ctx context.Context, rawURL string) (*Node, error) {
	options, config, err := ParseURL(rawURL)
	if err != nil {
		return nil, err
	}
	return Connect(ctx, options, config)
}

// Connect connects to PostgreSQL, creates missing tables as [Migrate] does, and joins the nodes there. It does
// not change options, which must come from [ParseURL] or pgx. If no server answers, the error wraps
// [store.ErrUnavailable]. Connect tries once, until ctx ends.
func Connect(ctx context.Context, options *pgxpool.Config, config Config) (*Node, error) {
	pool, err := Dial(ctx, options.Copy())
	if err != nil {
		return nil, err
	}
	n, err := openNode(ctx, pool, config)
	if err != nil {
		pool.Close()
		return nil, pools.MarkUnavailable(err)
	}
	n.close = sync.OnceValue(n.closeAll)
	return n, nil
}

func openNode(ctx context.Context, pool *pgxpool.Pool, config Config) (*Node, error) {
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

// Nodes returns the number of nodes that share the store's buckets, including this one: the highest of the last
// three counts, 5 s apart. It does not change while PostgreSQL does not answer.
func (n *Node) Nodes() int { return n.presence.Nodes() }

// Close closes the store, leaves the nodes and closes the connections. Later calls fail.
func (n *Node) Close() error { return n.close() }

func (n *Node) closeAll() error {
	err := n.Store.Close()
	n.presence.Close()
	pools.Close(n.pool)
	return err
}

// Dial calls [pgxpool.NewWithConfig] and verifies that the server is PostgreSQL 14 or later, and not a standby.
// If no server answers, the error wraps [store.ErrUnavailable]. The caller closes the pool. Dial takes 10 s at
// most.
func Dial(ctx context.Context, options *pgxpool.Config) (*pgxpool.Pool, error) {
	pool, err := pgxpool.NewWithConfig(ctx, options)
	if err != nil {
		return nil, fmt.Errorf("pgstore: connect: %w", err)
	}
	if err := verify(ctx, pool); err != nil {
		pool.Close()
		return nil, fmt.Errorf("pgstore: connect: %w", pools.MarkUnavailable(err))
	}
	return pool, nil
}

// verify asks the server for its version and role, so that a wrong URL fails at startup and not at the first
// take.
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
		return fmt.Errorf("the server is PostgreSQL %s: use 14 or later", text)
	}
	return nil
}
