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

// A Reader queries the table. [NewReader] creates it. It is safe for concurrent use.
type Reader struct {
	pool   *pgxpool.Pool
	config Config
}

// NewReader returns a reader that uses pool. The caller closes pool after the reader. It uses the settings
// Schema, Key and Timeout. Without a Key, queries find keys and users only in their stored form.
func NewReader(pool *pgxpool.Pool, config Config) (*Reader, error) {
	if pool == nil {
		return nil, errors.New("violations: new reader: pool is required")
	}
	config.Raw = true // reading needs no key
	config, err := config.withDefaults()
	if err != nil {
		return nil, fmt.Errorf("violations: new reader: %w", err)
	}
	return &Reader{pool, config}, nil
}

type Violation struct {
	ID       int64
	At, Last time.Time    // first and last denial
	Key      string       // empty if there was no bucket, [Others] for overflow
	User     string       // empty if unknown
	Network  netip.Prefix // zero if unknown
	Endpoint string       // method and path; empty if unknown

	Rule, Limit, Reason string

	Tokens     float64       // remaining tokens at the first denial; -1 if there was no bucket
	Cost       float64       // sum over all denials
	RetryAfter time.Duration // of the first denial; [bucket.Never] if no wait helps
	Denials    int64
	Shadow     bool // admitted, because the rule is in shadow mode
	Node       string
}

// Address returns Network as text: without the prefix length for a single address, and empty if unknown.
func (v *Violation) Address() string {
	switch {
	case !v.Network.IsValid():
		return ""
	case v.Network.IsSingleIP():
		return v.Network.Addr().String()
	}
	return v.Network.String()
}

// Position returns the position of the row in a list.
func (v *Violation) Position() Position { return Position{v.At, v.ID} }

// Row returns v in its JSON form. Unknown values are null.
func (v *Violation) Row() api.Violation {
	row := api.Violation{
		ID: v.ID, At: v.At.UTC(), LastAt: v.Last.UTC(), Denials: v.Denials, Rule: v.Rule, Limit: v.Limit, Reason: v.Reason, Shadow: v.Shadow,
		Key: nonEmpty(v.Key), User: nonEmpty(v.User), Address: nonEmpty(v.Address()), Endpoint: nonEmpty(v.Endpoint), Cost: v.Cost, Node: v.Node,
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

func nonEmpty(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// List returns the selected rows, newest first. If it exceeds the Timeout, the error wraps [ErrTimeout].
//
// A row with an infinite time, which only other programs can write, has no useful Position. Since and Until
// exclude such rows.
func (r *Reader) List(ctx context.Context, q Query) (list []Violation, err error) {
	limit, err := q.rowLimit(DefaultList)
	if err == nil {
		statement, args := r.listSQL(q, limit)
		err = r.read(ctx, pgx.ReadCommitted, func(ctx context.Context, tx pgx.Tx) error {
			rows, err := tx.Query(ctx, statement, args...)
			if err != nil {
				return err
			}
			list, err = pgx.CollectRows(rows, scanViolation)
			return err
		})
	}
	if err != nil {
		return nil, fmt.Errorf("violations: list: %w", err)
	}
	return list, nil
}

// listSQL returns the statement of List. All statements of this package qualify functions, operators and types with
// their schema, so that the session's search_path has no effect.
func (r *Reader) listSQL(q Query, limit int) (statement string, args []any) {
	where, args := r.whereClause(q)
	return `SELECT violation_id, ` + instantSQL("requested_at") + `, ` + instantSQL("last_at") + `, bucket_key, coalesce(user_id, ''), ip_address::pg_catalog.text, coalesce(endpoint, ''),
		rule_name, limit_name, reason, coalesce(tokens_at_time, -1), cost, ` + microsecondsSQL("retry_after") + `, denials, shadow, node
		FROM ` + r.table() + where + fmt.Sprintf(" ORDER BY requested_at DESC, violation_id DESC LIMIT %d", limit), args
}

// ErrTimeout is the error of a query that exceeded the Timeout.
var ErrTimeout = errors.New("query timed out")

// read calls f in a transaction. Both the context and the database enforce the Timeout, so that no query
// continues after read returns.
func (r *Reader) read(ctx context.Context, level pgx.TxIsoLevel, f func(context.Context, pgx.Tx) error) error {
	within, cancel := context.WithTimeout(ctx, r.config.Timeout)
	defer cancel()
	begin := fmt.Sprintf("BEGIN ISOLATION LEVEL %s READ ONLY; SET LOCAL statement_timeout = %d", level, max(r.config.Timeout.Milliseconds(), 1))
	err := pgx.BeginTxFunc(within, r.pool, pgx.TxOptions{BeginQuery: begin}, func(tx pgx.Tx) error { return f(within, tx) })
	const canceled = "57014"
	e, ok := errors.AsType[*pgconn.PgError](err)
	if ctx.Err() == nil && (within.Err() != nil || ok && e.Code == canceled) {
		return fmt.Errorf("%w: more than %v: %w", ErrTimeout, r.config.Timeout, err)
	}
	return err
}

func scanViolation(row pgx.CollectableRow) (v Violation, err error) {
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

// microsecondsSQL returns an SQL expression for a time or an interval as a number. The text form depends on settings
// of the user.
func microsecondsSQL(of string) string {
	return "(extract(epoch FROM " + of + ") OPERATOR(pg_catalog.*) 1000000)::bigint"
}

// instantSQL returns an SQL expression for a time since 1970. Infinite times, which other programs can write, become
// 0.
func instantSQL(at string) string {
	return "CASE WHEN pg_catalog.isfinite(" + at + ") THEN " + microsecondsSQL(at) + " ELSE 0 END"
}

func (r *Reader) table() string {
	return pgx.Identifier{r.config.Schema, "rate_limit_violation"}.Sanitize()
}
