// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/metehq/mete/pgstore"
	"github.com/metehq/mete/pgstore/internal/pools"
	"github.com/metehq/mete/pgstore/internal/schema"
	"github.com/metehq/mete/policy"
)

const (
	// DefaultPoll is the interval at which [Source.Watch] polls the revision in addition to notifications.
	// PooledPoll is the interval without notifications.
	DefaultPoll = 5 * time.Second
	PooledPoll  = 500 * time.Millisecond

	// connectTimeout bounds one connection attempt, unless the pool has its own timeout. callTimeout bounds a
	// short statement, readTimeout a read of all rows, and editTimeout an edit.
	connectTimeout = 5 * time.Second
	callTimeout    = 2 * time.Second
	readTimeout    = 15 * time.Second
	editTimeout    = time.Minute

	// A source makes few calls, one at a time.
	poolConns    = 4
	poolIdleTime = 30 * time.Second
)

// Config holds the settings of a [Source]. The zero value selects the defaults.
type Config struct {
	// Schema contains the tables. Empty selects the URL's schema, or else [pgstore.DefaultSchema].
	Schema string

	// ReadOnly disables the creation of missing tables. Reading then fails if tables are missing.
	ReadOnly bool

	// Poll is the interval at which [Source.Watch] polls for changes without a notification. 0 is [DefaultPoll].
	// Behind a pooler, it is [PooledPoll] at most.
	Poll time.Duration

	// Logger receives an event when the connection is lost and when it is restored. Nil logs nothing.
	Logger *slog.Logger
}

// A Source is the tables in one schema. [Open] and [New] create it. It is safe for concurrent use.
type Source struct {
	pool   *pgxpool.Pool
	owned  bool
	config Config
	schema string // quoted
}

// Open is [pgstore.ParseURL] followed by [Connect]. A schema in config overrides the URL's schema. Errors contain
// no password.
func Open(ctx context.Context, rawURL string, config Config) (*Source, error) {
	options, named, err := pgstore.ParseURL(rawURL)
	if err != nil {
		return nil, err // the error has a prefix
	}
	config.Schema = cmp.Or(config.Schema, named.Schema)
	return Connect(ctx, options, config)
}

// Connect connects to a database and creates missing tables in the schema. It does not change options. If no
// server answers, the error wraps [store.ErrUnavailable]. Connect tries once.
func Connect(ctx context.Context, options *pgxpool.Config, config Config) (*Source, error) {
	options = options.Copy()
	options.MaxConns, options.MinConns, options.MinIdleConns = poolConns, 0, 0
	options.MaxConnIdleTime = poolIdleTime
	pool, err := pgstore.Dial(ctx, options)
	if err != nil {
		return nil, err // the error has a prefix
	}
	s, err := New(ctx, pool, config)
	if err != nil {
		pool.Close()
		return nil, err
	}
	s.owned = true
	return s, nil
}

// New is [Open] for an existing pool. The caller closes pool after the source. [Source.Watch] opens its own
// connection with the same settings.
func New(ctx context.Context, pool *pgxpool.Pool, config Config) (*Source, error) {
	config.Schema, config.Poll = cmp.Or(config.Schema, schema.Default), cmp.Or(config.Poll, DefaultPoll)
	if config.Logger == nil {
		config.Logger = slog.New(slog.DiscardHandler)
	}
	switch err := schema.Check(config.Schema); {
	case pool == nil:
		return nil, errors.New("rules: new: pool is required")
	case config.Poll < 0:
		return nil, fmt.Errorf("rules: new: poll %v: must not be negative", config.Poll)
	case err != nil:
		return nil, fmt.Errorf("rules: new: %w", err)
	}
	s := &Source{pool: pool, config: config, schema: schema.Quote(config.Schema)}
	if config.ReadOnly {
		return s, nil
	}
	if err := schema.Migrate(ctx, pool, config.Schema); err != nil {
		return nil, fmt.Errorf("rules: %w", pools.MarkUnavailable(err))
	}
	return s, nil
}

// Close closes the connections that [Open] created. It waits for a second at most.
func (s *Source) Close() {
	if s.owned {
		pools.Close(s.pool)
	}
}

// Schema returns the schema of the tables.
func (s *Source) Schema() string { return s.config.Schema }

// Load reads the active rules and compiles them. It also returns their revision if it could read it. The error
// for invalid rows is an [Errors] that lists all of them. If the database is unavailable, the error wraps
// [store.ErrUnavailable].
func (s *Source) Load(ctx context.Context, opts policy.Options) (*policy.Matcher, int64, error) {
	set, err := s.readPooled(ctx, activeRows)
	if err != nil {
		return nil, 0, fmt.Errorf("rules: load: %w", err)
	}
	m, err := set.Compile(opts)
	return m, set.Revision, err
}

// Read reads all rules, including inactive ones.
func (s *Source) Read(ctx context.Context) (*Set, error) {
	set, err := s.readPooled(ctx, allRows)
	if err != nil {
		return nil, fmt.Errorf("rules: read: %w", err)
	}
	return set, nil
}

func (s *Source) qualify(text string) string { return strings.ReplaceAll(text, "{schema}", s.schema) }

type beginner interface {
	BeginTx(ctx context.Context, options pgx.TxOptions) (pgx.Tx, error)
}
