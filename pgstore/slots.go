// SPDX-License-Identifier: Apache-2.0

package pgstore

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/pgstore/internal/schema"
	"github.com/metehq/mete/store"
)

var _ store.SlotLister = (*Store)(nil)

// Slots implements [store.SlotLister]. It ignores a transaction in ctx.
func (s *Store) Slots(ctx context.Context, key string, most int) ([]bucket.Slot, bucket.Instant, error) {
	ctx, cancel := context.WithTimeout(ctx, s.config.Timeout)
	defer cancel()
	query := fmt.Sprintf(`SELECT lim, log, {schema}.microseconds() FROM (VALUES ($1::pg_catalog.bytea)) AS k (key)
		LEFT JOIN %s b ON b.key OPERATOR(pg_catalog.=) k.key`, s.bucketTable())
	var lim *string
	var log []int64
	var now int64
	row := s.pool.QueryRow(ctx, schema.Qualify(query, s.config.Schema), pgx.QueryExecModeExec, []byte(s.config.Prefix+key))
	if err := row.Scan(&lim, &log, &now); err != nil {
		return nil, 0, withOp(newNotSpent(err), "slots")
	}
	if s.config.Now != nil {
		now = int64(s.config.Now())
	}
	if lim == nil || *lim == "" {
		return nil, bucket.Instant(now), nil
	}
	if l, err := parseLimit(*lim); err != nil || l.Algorithm() != bucket.AlgorithmConcurrency || len(log)%3 != 0 {
		return nil, 0, withOp(newNotSpent(errors.Join(err, &AnswerError{"the key does not hold slots"})), "slots")
	}
	var list []bucket.Slot
	for ; len(log) > 0 && len(list) < most; log = log[3:] {
		if log[0] > now {
			list = append(list, bucket.Slot{ID: slotFrom(log[1], log[2]), End: bucket.Instant(log[0])})
		}
	}
	return list, bucket.Instant(now), nil
}

// slotHalves returns the halves of an ID, as two columns of numbers hold it.
func slotHalves(id bucket.SlotID) (high, low int64) {
	return int64(binary.BigEndian.Uint64(id[:8])), int64(binary.BigEndian.Uint64(id[8:]))
}

func slotFrom(high, low int64) (id bucket.SlotID) {
	binary.BigEndian.PutUint64(id[:8], uint64(high))
	binary.BigEndian.PutUint64(id[8:], uint64(low))
	return id
}
