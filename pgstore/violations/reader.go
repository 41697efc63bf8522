// SPDX-License-Identifier: Apache-2.0

package violations

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/metehq/mete/bucket"
)

// Numbers of rows that [Reader.List] returns.
const (
	DefaultList = 50
	MaxList     = 10_000
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

// A Query says which rows are meant. The zero Query means all.
type Query struct {
	// Since and Until bound the time of the first denial of a row, Until not
	// included. The zero time is no bound.
	Since, Until time.Time

	// Rule is the name of the rule.
	Rule string

	// Key and User are those that were denied, as they are or as they are stored.
	Key, User string

	// Network is the client's address, or a network of clients. Where addresses are
	// stored as networks, those count that it is in.
	Network netip.Prefix

	// Limit bounds the rows that List returns, and the groups of each part of a
	// summary: 0 is [DefaultList], [MaxList] the most.
	Limit int
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

// List returns the newest rows, newest first.
func (r *Reader) List(ctx context.Context, q Query) ([]Violation, error) {
	ctx, cancel := context.WithTimeout(ctx, r.config.Timeout)
	defer cancel()
	limit, err := q.limit(DefaultList)
	if err != nil {
		return nil, fmt.Errorf("violations: list: %w", err)
	}
	where, args := r.where(q)
	rows, err := r.pool.Query(ctx, `SELECT violation_id, `+instant("requested_at")+`, `+instant("last_at")+`, bucket_key, coalesce(user_id, ''), ip_address::text, coalesce(endpoint, ''),
		rule_name, limit_name, reason, coalesce(tokens_at_time, -1), cost, `+microseconds("retry_after")+`, denials, shadow, node
		FROM `+r.table()+where+fmt.Sprintf(" ORDER BY requested_at DESC, violation_id DESC LIMIT %d", limit), args...)
	if err != nil {
		return nil, fmt.Errorf("violations: list: %w", err)
	}
	list, err := pgx.CollectRows(rows, scan)
	if err != nil {
		return nil, fmt.Errorf("violations: list: %w", err)
	}
	return list, nil
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
func microseconds(of string) string { return "(extract(epoch FROM " + of + ") * 1000000)::bigint" }

// instant is SQL for a time since 1970, which has to be finite: others can write rows, too.
func instant(at string) string {
	return "CASE WHEN isfinite(" + at + ") THEN " + microseconds(at) + " ELSE 0 END"
}

func (r *Reader) table() string {
	return pgx.Identifier{r.config.Schema, "rate_limit_violation"}.Sanitize()
}

// limit is how many are asked for.
func (q Query) limit(def int) (int, error) {
	switch {
	case q.Limit == 0:
		return def, nil
	case q.Limit < 0 || q.Limit > MaxList:
		return 0, fmt.Errorf("limit %d: must be between 1 and %d, or 0", q.Limit, MaxList)
	}
	return q.Limit, nil
}

// where returns the clause that a query comes to, and the arguments of a statement
// with it.
func (r *Reader) where(q Query) (clause string, args []any) {
	var terms []string
	args = []any{pgx.QueryExecModeExec}
	add := func(format string, values ...any) {
		places := make([]any, len(values))
		for i := range values {
			places[i] = fmt.Sprintf("$%d", len(args)+i)
		}
		terms, args = append(terms, fmt.Sprintf(format, places...)), append(args, values...)
	}
	if !q.Since.IsZero() {
		add("requested_at >= %s::timestamptz", q.Since)
	}
	if !q.Until.IsZero() {
		add("requested_at < %s::timestamptz", q.Until)
	}
	if q.Rule != "" {
		add("rule_name = %s::text", clean(q.Rule, maxRule))
	}
	if q.Key != "" {
		add("(bucket_key = %s::text OR bucket_key = %s::text)", clean(q.Key, maxKey), hash(r.config.Key, aKey, q.Key))
	}
	if q.User != "" {
		add("(user_id = %s::text OR user_id = %s::text)", clean(q.User, maxUser), hash(r.config.Key, aUser, q.User))
	}
	if q.Network.IsValid() {
		of := q.Network.Masked()
		add("(ip_address <<= %s::text::inet OR ip_address = %s::text::inet)", of.String(), network(of.Addr()).String())
	}
	if len(terms) == 0 {
		return "", args
	}
	return " WHERE " + strings.Join(terms, " AND "), args
}
