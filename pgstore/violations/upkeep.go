// SPDX-License-Identifier: Apache-2.0

package violations

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

// Intervals between two upkeeps, when the last one went well and when it did not.
// Partitions are made three days ahead.
const (
	upkeepInterval = time.Hour
	upkeepRetry    = time.Minute
)

// An upkeep says when partitions are next made and dropped.
type upkeep struct {
	next    time.Time // zero: at once
	trouble complaint
}

// tend makes and drops partitions, if that is due. Without, rows are written all
// the same.
func (r *Recorder) tend(u *upkeep) {
	now := r.now() // when it began: the work takes time, in which the clock may jump
	if now.Before(u.next) {
		return
	}
	ctx, cancel := context.WithTimeout(r.closing, r.config.Timeout)
	defer cancel()
	var at *time.Time // the database's own
	if r.config.Now != nil {
		at = &now
	}
	var made, dropped, trimmed int
	err := r.pool.QueryRow(ctx, "SELECT made, dropped, trimmed FROM "+r.table("rate_limit_violation_maintain")+"($1::pg_catalog.timestamptz, $2::interval)",
		pgx.QueryExecModeExec, at, r.config.Retention).Scan(&made, &dropped, &trimmed)
	if err != nil {
		u.next = now.Add(upkeepRetry)
		if u.trouble.due() {
			r.config.Logger.Warn("cannot maintain partitions of violations, trying again", "err", err)
		}
		return
	}
	u.next = now.Add(upkeepInterval)
	u.trouble.over()
	if made+dropped+trimmed > 0 {
		r.config.Logger.Debug("partitions of violations maintained", "made", made, "dropped", dropped, "rows", trimmed)
	}
}
