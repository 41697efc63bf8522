// SPDX-License-Identifier: Apache-2.0

package violations

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	maxBins   = 120
	maxSeries = 6
)

// binSteps are the possible bin widths below a day. Larger bins are whole days.
var binSteps = []time.Duration{
	time.Second, 2 * time.Second, 5 * time.Second, 10 * time.Second, 15 * time.Second, 30 * time.Second,
	time.Minute, 2 * time.Minute, 5 * time.Minute, 10 * time.Minute, 15 * time.Minute, 30 * time.Minute,
	time.Hour, 2 * time.Hour, 3 * time.Hour, 6 * time.Hour, 12 * time.Hour,
}

const day = 24 * time.Hour

// A Histogram counts denials per rule over time, in at most 120 bins of equal width. A row counts in the bin of
// its first denial.
type Histogram struct {
	Start time.Time     // start of the first bin, a multiple of Step since 1970
	Step  time.Duration // width of a bin
	Bins  int

	// Series are the rules with the most denials in descending order, at most 6. If there are more rules, the
	// last element sums up the rest under the name [Others].
	Series []Series

	// Rules is the number of rules, and Rows the number of rows.
	Rules, Rows int64
}

// A Series is one rule in a [Histogram], with a count per bin.
type Series struct {
	Rule            string
	Denials, Shadow []int64
}

// Histogram counts the rows of a query, which must have Since and Until. If it exceeds the Timeout, the error
// wraps [ErrTimeout].
func (r *Reader) Histogram(ctx context.Context, q Query) (Histogram, error) {
	h, err := newHistogram(q)
	if err == nil {
		statement, args := r.histogramSQL(q, h.Step)
		err = r.read(ctx, pgx.ReadCommitted, func(ctx context.Context, tx pgx.Tx) error {
			rows, err := tx.Query(ctx, statement, args...)
			if err != nil {
				return err
			}
			return h.scanRows(rows)
		})
	}
	if err != nil {
		return Histogram{}, fmt.Errorf("violations: histogram: %w", err)
	}
	return h, nil
}

func newHistogram(q Query) (Histogram, error) {
	if q.Since.IsZero() || q.Until.IsZero() || !q.Since.Before(q.Until) {
		return Histogram{}, errors.New("since and until are required, and until must be after since")
	}
	if q.Until.Sub(q.Since) == math.MaxInt64 { // Sub saturates at this value
		return Histogram{}, errors.New("until must be at most 292 years after since")
	}
	first, last := q.Since.UnixMicro(), q.Until.Add(-1).UnixMicro()
	bins := func(step time.Duration) int64 {
		return floorDiv(last, step.Microseconds()) - floorDiv(first, step.Microseconds()) + 1
	}
	step := day
	for _, s := range binSteps {
		if bins(s) <= maxBins {
			step = s
			break
		}
	}
	for bins(step) > maxBins {
		step += day * time.Duration(max(bins(step)/maxBins-1, 1))
	}
	start := time.UnixMicro(floorDiv(first, step.Microseconds()) * step.Microseconds())
	return Histogram{Start: start, Step: step, Bins: int(bins(step))}, nil
}

func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}

// histogramSQL returns the statement of Histogram. It counts denials per bin, for each of the top rules and for the
// rest.
func (r *Reader) histogramSQL(q Query, step time.Duration) (statement string, args []any) {
	q.After = Position{}
	where, args := r.whereClause(q)
	return fmt.Sprintf(`WITH counted AS MATERIALIZED (
			SELECT rule_name, pg_catalog.floor(extract(epoch FROM requested_at) OPERATOR(pg_catalog./) %[1]d)::bigint AS bin,
				%[2]s AS enforced, %[3]s AS shadow, pg_catalog.count(*) AS n
			FROM %[4]s%[5]s GROUP BY 1, 2),
		ranked AS (
			SELECT rule_name AS name, pg_catalog.count(*) OVER () AS rules,
				pg_catalog.row_number() OVER (ORDER BY pg_catalog.sum(enforced OPERATOR(pg_catalog.+) shadow) DESC, rule_name) AS rank
			FROM counted GROUP BY 1)
		SELECT least(rank, %[6]d),
			CASE WHEN rank OPERATOR(pg_catalog.<) %[6]d OR rules OPERATOR(pg_catalog.=) %[6]d THEN name ELSE '%[7]s' END, bin,
			pg_catalog.sum(enforced)::bigint, pg_catalog.sum(shadow)::bigint, pg_catalog.sum(n)::bigint, pg_catalog.max(rules)
		FROM counted JOIN ranked ON rule_name OPERATOR(pg_catalog.=) name GROUP BY 1, 2, 3 ORDER BY 1, 3`,
		int64(step/time.Second), enforced, inShadow, r.table(), where, maxSeries, Others), args
}

func (h *Histogram) scanRows(rows pgx.Rows) error {
	var rank, bin, enforced, shadow, n int64
	var rule string
	first := h.Start.UnixMicro() / h.Step.Microseconds()
	_, err := pgx.ForEachRow(rows, []any{&rank, &rule, &bin, &enforced, &shadow, &n, &h.Rules}, func() error {
		if int(rank) > len(h.Series) {
			h.Series = append(h.Series, Series{Rule: rule, Denials: make([]int64, h.Bins), Shadow: make([]int64, h.Bins)})
		}
		at := bin - first
		if at < 0 || at >= int64(h.Bins) {
			return fmt.Errorf("a row is in bin %d, outside of %d bins", at, h.Bins)
		}
		s := &h.Series[rank-1]
		s.Denials[at] += enforced
		s.Shadow[at] += shadow
		h.Rows += n
		return nil
	})
	return err
}
