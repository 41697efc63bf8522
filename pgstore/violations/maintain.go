// SPDX-License-Identifier: Apache-2.0

package violations

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

// Intervals after a successful and a failed maintenance. Partitions are created three days ahead.
const (
	upkeepInterval = time.Hour
	upkeepRetry    = time.Minute
)

// An upkeep schedules the maintenance of partitions.
type upkeep struct {
	next    time.Time // zero is now
	trouble problem
}

// maintain creates and drops partitions when that is due. Recording works without it.
func (r *Recorder) maintain(u *upkeep) {
	now := r.now() // the start of the work, during which the clock may jump
	if now.Before(u.next) {
		return
	}
	ctx, cancel := context.WithTimeout(r.closing, r.config.Timeout)
	defer cancel()
	var at *time.Time // nil selects the database's clock
	if r.config.Now != nil {
		at = &now
	}
	var made, dropped, trimmed int
	err := r.pool.QueryRow(ctx, "SELECT made, dropped, trimmed FROM "+r.table("rate_limit_violation_maintain")+"($1::pg_catalog.timestamptz, $2::interval)",
		pgx.QueryExecModeExec, at, r.config.Retention).Scan(&made, &dropped, &trimmed)
	if err != nil {
		u.next = now.Add(upkeepRetry)
		if u.trouble.shouldLog() {
			r.config.Logger.Warn("cannot maintain partitions of violations, retrying", "err", err)
		}
		return
	}
	u.next = now.Add(upkeepInterval)
	u.trouble.end()
	if made+dropped+trimmed > 0 {
		r.config.Logger.Debug("partitions of violations maintained", "made", made, "dropped", dropped, "rows", trimmed)
	}
}
