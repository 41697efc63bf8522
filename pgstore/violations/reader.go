// SPDX-License-Identifier: Apache-2.0

package violations

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/metehq/mete/api"
	"github.com/metehq/mete/bucket"
)

// A Reader asks the table. [NewReader] makes it. It is safe for concurrent use.
type Reader struct {
	pool   *pgxpool.Pool
	config Config
}

// NewReader returns a reader that asks by pool, which stays the caller's. Of the
// settings it uses Schema, Key and Timeout. Without Key, keys and users can only be
// looked for as they are stored.
func NewReader(pool *pgxpool.Pool, config Config) (*Reader, error) {
	if pool == nil {
		return nil, errors.New("violations: new reader: pool is required")
	}
	config.Raw = true // it takes no key to read
	config, err := config.checked()
	if err != nil {
		return nil, fmt.Errorf("violations: new reader: %w", err)
	}
	return &Reader{pool, config}, nil
}

// A Violation is a row of the table.
type Violation struct {
	ID       int64
	At, Last time.Time    // the first and the last denial that it stands for
	Key      string       // of the bucket; empty where none was asked, [Others] for many
	User     string       // empty where there is none
	Network  netip.Prefix // of the client, or the address; the zero prefix where there is none
	Endpoint string       // method and path; empty where there is none

	Rule, Limit, Reason string

	Tokens     float64       // that the bucket held at the first; -1 where none was asked
	Cost       float64       // of all of them
	RetryAfter time.Duration // of the first; [bucket.Never] where no wait helps
	Denials    int64
	Shadow     bool // was let through, as the rule is in shadow
	Node       string
}

// Address is Network as people write it: without a prefix that says nothing, and
// empty where there is none.
func (v *Violation) Address() string {
	switch {
	case !v.Network.IsValid():
		return ""
	case v.Network.IsSingleIP():
		return v.Network.Addr().String()
	}
	return v.Network.String()
}

// Place is where the row stands in a list.
func (v *Violation) Place() Place { return Place{v.At, v.ID} }

// Row returns v as JSON has it. Unknown values are null.
func (v *Violation) Row() api.Violation {
	row := api.Violation{
		ID: v.ID, At: v.At.UTC(), LastAt: v.Last.UTC(), Denials: v.Denials, Rule: v.Rule, Limit: v.Limit, Reason: v.Reason, Shadow: v.Shadow,
		Key: known(v.Key), User: known(v.User), Address: known(v.Address()), Endpoint: known(v.Endpoint), Cost: v.Cost, Node: v.Node,
	}
	if v.Tokens >= 0 {
		row.Tokens = &v.Tokens
	}
	if v.RetryAfter != bucket.Never {
		seconds := v.RetryAfter.Seconds()
		row.RetryAfter = &seconds
	}
	return row
}

// known returns a text that is not empty, else nil.
func known(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// List returns the newest rows, newest first. A question that takes longer than the
// Timeout is an [ErrSlow].
//
// The place of a row whose time is infinite, which only others can have written, is of
// no use: set Since and Until, and there is none.
func (r *Reader) List(ctx context.Context, q Query) (list []Violation, err error) {
	limit, err := q.limit(DefaultList)
	if err == nil {
		statement, args := r.list(q, limit)
		err = r.read(ctx, pgx.ReadCommitted, func(ctx context.Context, tx pgx.Tx) error {
			rows, err := tx.Query(ctx, statement, args...)
			if err != nil {
				return err
			}
			list, err = pgx.CollectRows(rows, scan)
			return err
		})
	}
	if err != nil {
		return nil, fmt.Errorf("violations: list: %w", err)
	}
	return list, nil
}

// list is the statement of List. Here, and in all statements of this package, each
// function, operator and type names its schema, unless the grammar knows it as
// PostgreSQL's own: the search_path of the session makes no difference.
func (r *Reader) list(q Query, limit int) (statement string, args []any) {
	where, args := r.where(q)
	return `SELECT violation_id, ` + instant("requested_at") + `, ` + instant("last_at") + `, bucket_key, coalesce(user_id, ''), ip_address::pg_catalog.text, coalesce(endpoint, ''),
		rule_name, limit_name, reason, coalesce(tokens_at_time, -1), cost, ` + microseconds("retry_after") + `, denials, shadow, node
		FROM ` + r.table() + where + fmt.Sprintf(" ORDER BY requested_at DESC, violation_id DESC LIMIT %d", limit), args
}

// ErrSlow says that a question was given up since it took longer than the Timeout.
var ErrSlow = errors.New("gave up: it took too long")

// read has f read in a transaction, for no longer than the Timeout. The database ends it
// then, too, so that nobody's question goes on behind their back.
func (r *Reader) read(ctx context.Context, level pgx.TxIsoLevel, f func(context.Context, pgx.Tx) error) error {
	within, cancel := context.WithTimeout(ctx, r.config.Timeout)
	defer cancel()
	begin := fmt.Sprintf("BEGIN ISOLATION LEVEL %s READ ONLY; SET LOCAL statement_timeout = %d", level, max(r.config.Timeout.Milliseconds(), 1))
	err := pgx.BeginTxFunc(within, r.pool, pgx.TxOptions{BeginQuery: begin}, func(tx pgx.Tx) error { return f(within, tx) })
	const canceled = "57014"
	e, ok := errors.AsType[*pgconn.PgError](err)
	if ctx.Err() == nil && (within.Err() != nil || ok && e.Code == canceled) {
		return fmt.Errorf("%w: more than %v: %w", ErrSlow, r.config.Timeout, err)
	}
	return err
}

func scan(row pgx.CollectableRow) (v Violation, err error) {
	var network *string
	var at, last int64
	var wait *int64
	err = row.Scan(&v.ID, &at, &last, &v.Key, &v.User, &network, &v.Endpoint, &v.Rule, &v.Limit, &v.Reason,
		&v.Tokens, &v.Cost, &wait, &v.Denials, &v.Shadow, &v.Node)
	if err != nil {
		return v, err
	}
	v.At, v.Last = time.UnixMicro(at), time.UnixMicro(last)
	if network != nil {
		if v.Network, err = netip.ParsePrefix(*network); err != nil {
			return v, err
		}
	}
	v.RetryAfter = bucket.Never
	if wait != nil {
		v.RetryAfter = time.Duration(*wait) * time.Microsecond
	}
	return v, nil
}

// microseconds is SQL for a time or an interval as a number: how those are written is
// a setting of the user, and pgx reads one way only.
func microseconds(of string) string {
	return "(extract(epoch FROM " + of + ") OPERATOR(pg_catalog.*) 1000000)::bigint"
}

// instant is SQL for a time since 1970, which has to be finite: others can write rows, too.
func instant(at string) string {
	return "CASE WHEN pg_catalog.isfinite(" + at + ") THEN " + microseconds(at) + " ELSE 0 END"
}

func (r *Reader) table() string {
	return pgx.Identifier{r.config.Schema, "rate_limit_violation"}.Sanitize()
}
