// SPDX-License-Identifier: Apache-2.0

package violations

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	// DefaultTop is the default number of groups in each part of a summary.
	DefaultTop = 10

	maxHours = 7 * 24
)

// A Summary ranks denials by rule, key, user, network and endpoint, and counts them per hour.
type Summary struct {
	// Denials counts denied requests, Shadow the requests that shadow rules would have denied, and Rows the rows
	// of both.
	Denials, Shadow, Rows int64

	// The groups with the most denials in descending order. Rows without a value are omitted.
	Rules, Keys, Users, Networks, Endpoints []Group

	// Hours are the last hours with denials in ascending order, at most a week. The name of a group is the start
	// of its hour in UTC: "2026-11-21 13:00".
	Hours []Group
}

// A Group counts the denials with a common value.
type Group struct {
	Name            string
	Denials, Shadow int64
	Last            time.Time
}

// Summarize sums up the selected rows.
func (r *Reader) Summarize(ctx context.Context, q Query) (Summary, error) {
	var s Summary
	limit, err := q.rowLimit(DefaultTop)
	if err == nil {
		// All parts read one snapshot.
		err = r.read(ctx, pgx.RepeatableRead, func(ctx context.Context, tx pgx.Tx) error {
			s, err = r.summarize(ctx, tx, q, limit)
			return err
		})
	}
	if err != nil {
		return Summary{}, fmt.Errorf("violations: summarize: %w", err)
	}
	return s, nil
}

const (
	enforced = "coalesce(pg_catalog.sum(denials) FILTER (WHERE NOT shadow), 0)::bigint"
	inShadow = "coalesce(pg_catalog.sum(denials) FILTER (WHERE shadow), 0)::bigint"
)

func (r *Reader) summarize(ctx context.Context, tx pgx.Tx, q Query, limit int) (s Summary, err error) {
	where, args := r.whereClause(q)
	all := "SELECT " + enforced + ", " + inShadow + ", pg_catalog.count(*) FROM " + r.table() + where
	if err := tx.QueryRow(ctx, all, args...).Scan(&s.Denials, &s.Shadow, &s.Rows); err != nil {
		return s, err
	}
	const most = "pg_catalog.sum(denials) DESC, 1"
	const hour = `pg_catalog.to_char(pg_catalog.date_trunc('hour', requested_at AT TIME ZONE 'UTC'), 'YYYY-MM-DD HH24:MI')`
	for _, part := range []struct {
		to          *[]Group
		what, order string
		limit       int
	}{
		{&s.Rules, "rule_name", most, limit},
		{&s.Keys, "CASE WHEN bucket_key OPERATOR(pg_catalog.<>) '' THEN bucket_key END", most, limit},
		{&s.Users, "user_id", most, limit},
		{&s.Networks, "pg_catalog.abbrev(ip_address)", most, limit},
		{&s.Endpoints, "endpoint", most, limit},
		{&s.Hours, hour, "1 DESC", maxHours},
	} {
		statement := fmt.Sprintf("SELECT %[1]s, %[2]s, %[3]s, %[8]s FROM %[4]s%[5]s GROUP BY 1 HAVING %[1]s IS NOT NULL ORDER BY %[6]s LIMIT %[7]d",
			part.what, enforced, inShadow, r.table(), where, part.order, part.limit, instantSQL("pg_catalog.max(last_at)"))
		rows, err := tx.Query(ctx, statement, args...)
		if err != nil {
			return s, err
		}
		if *part.to, err = pgx.CollectRows(rows, scanGroup); err != nil {
			return s, err
		}
	}
	slices.Reverse(s.Hours)
	return s, nil
}

func scanGroup(row pgx.CollectableRow) (g Group, err error) {
	var last int64
	err = row.Scan(&g.Name, &g.Denials, &g.Shadow, &last)
	g.Last = time.UnixMicro(last)
	return g, err
}
