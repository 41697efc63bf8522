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
	// DefaultPoll is how often [Source.Watch] looks at the revision where the server
	// tells it of changes as well; PooledPoll is how often where it cannot.
	DefaultPoll = 5 * time.Second
	PooledPoll  = 500 * time.Millisecond

	// connectTimeout is for one connection unless the pool says otherwise, callTimeout
	// for one short statement, and readTimeout for reading all rows. editTimeout is for
	// a change of any size.
	connectTimeout = 5 * time.Second
	callTimeout    = 2 * time.Second
	readTimeout    = 15 * time.Second
	editTimeout    = time.Minute

	// A source is asked rarely, and one call at a time.
	poolConns    = 4
	poolIdleTime = 30 * time.Second
)

// Config are the settings of a [Source]. The zero Config is sound.
type Config struct {
	// Schema is where the tables are. Empty is what the URL says, or else
	// [pgstore.DefaultSchema].
	Schema string

	// ReadOnly makes nothing in the database: where there are no tables yet, reading
	// them fails.
	ReadOnly bool

	// Poll is how often [Source.Watch] looks for changes that nobody told it of. 0 is
	// [DefaultPoll]; behind a pooler it is never longer than [PooledPoll].
	Poll time.Duration

	// Logger is told when a connection is lost and found again. Nil logs nothing.
	Logger *slog.Logger
}

// A Source are the tables in one schema. [Open] or [New] makes it. It is safe for
// concurrent use.
type Source struct {
	pool   *pgxpool.Pool
	owned  bool
	config Config
	schema string // quoted
}

// Open is [pgstore.ParseURL] and then [Connect]. The schema is that of the URL, unless
// config names one. No error contains a password.
func Open(ctx context.Context, rawURL string, config Config) (*Source, error) {
	options, named, err := pgstore.ParseURL(rawURL)
	if err != nil {
		return nil, err // it says pgstore, and what
	}
	config.Schema = cmp.Or(config.Schema, named.Schema)
	return Connect(ctx, options, config)
}

// Connect connects to a database and makes missing tables in the schema. It does not
// change options. If no server answers, the error wraps [store.ErrUnavailable]. Connect
// tries once.
func Connect(ctx context.Context, options *pgxpool.Config, config Config) (*Source, error) {
	options = options.Copy()
	options.MaxConns, options.MinConns, options.MinIdleConns = poolConns, 0, 0
	options.MaxConnIdleTime = poolIdleTime
	pool, err := pgstore.Dial(ctx, options)
	if err != nil {
		return nil, err // it says pgstore, and what
	}
	s, err := New(ctx, pool, config)
	if err != nil {
		pool.Close()
		return nil, err
	}
	s.owned = true
	return s, nil
}

// New is [Open] over a pool, which stays the caller's and must outlive the source.
// [Source.Watch] has a connection of its own beside it, with the same settings.
func New(ctx context.Context, pool *pgxpool.Pool, config Config) (*Source, error) {
	config.Schema, config.Poll = cmp.Or(config.Schema, schema.Default), cmp.Or(config.Poll, DefaultPoll)
	if config.Logger == nil {
		config.Logger = slog.New(slog.DiscardHandler)
	}
	switch err := schema.Check(config.Schema); {
	case pool == nil:
		return nil, errors.New("rules: new: pool is required")
	case config.Poll < 0:
		return nil, fmt.Errorf("rules: new: poll %v: must not be below 0", config.Poll)
	case err != nil:
		return nil, fmt.Errorf("rules: new: %w", err)
	}
	s := &Source{pool: pool, config: config, schema: schema.Quote(config.Schema)}
	if config.ReadOnly {
		return s, nil
	}
	if err := schema.Migrate(ctx, pool, config.Schema); err != nil {
		return nil, fmt.Errorf("rules: %w", pools.Unanswered(err))
	}
	return s, nil
}

// Close closes the connections that [Open] made. It waits for a second at most.
func (s *Source) Close() {
	if s.owned {
		pools.Close(s.pool)
	}
}

// Schema is where the tables are.
func (s *Source) Schema() string { return s.config.Schema }

// Load reads the active rules and compiles them. It also returns their revision,
// where that could be read: what is wrong with the rows is an [Errors], all of it. An
// error that wraps [store.ErrUnavailable] is about the database.
func (s *Source) Load(ctx context.Context, opts policy.Options) (*policy.Matcher, int64, error) {
	set, err := s.readPooled(ctx, onlyActive)
	if err != nil {
		return nil, 0, fmt.Errorf("rules: load: %w", err)
	}
	m, err := set.Compile(opts)
	return m, set.Revision, err
}

// Read reads all rules, active or not.
func (s *Source) Read(ctx context.Context) (*Set, error) {
	set, err := s.readPooled(ctx, all)
	if err != nil {
		return nil, fmt.Errorf("rules: read: %w", err)
	}
	return set, nil
}

// sql returns a statement with the schema in the place of {schema}.
func (s *Source) sql(text string) string { return strings.ReplaceAll(text, "{schema}", s.schema) }

// beginner is a pool or a connection.
type beginner interface {
	BeginTx(ctx context.Context, options pgx.TxOptions) (pgx.Tx, error)
}
