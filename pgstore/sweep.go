// SPDX-License-Identifier: Apache-2.0

package pgstore

import (
	"context"
	"encoding/binary"
	"math"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
)

// DefaultSweepEvery is the interval between two sweeps.
const DefaultSweepEvery = time.Second

const (
	// sweepPages is the number of pages that a sweep reads, and sweepRows bounds the rows that it removes, within
	// some milliseconds. sweepRounds bounds consecutive sweeps while many rows are full.
	sweepPages  = 256
	sweepRows   = 1000
	sweepRounds = 16

	// sweepPart is the smallest part of the table that a sweep reads, so that sweeps cover a table of any size
	// every two minutes.
	sweepPart = 1.0 / 120
)

// A sweeper removes the rows of full buckets in small batches, independent of takes. Each store has one. Sweepers
// of the same table run one at a time.
type sweeper struct {
	store *Store
	part  float64 // start of the next sweep
	pages int64
	swept atomic.Int64
	stop  context.CancelFunc
	ended sync.WaitGroup
}

func startSweeper(s *Store) *sweeper {
	w := &sweeper{store: s, part: rand.Float64(), pages: sweepPages}
	ctx, stop := context.WithCancel(context.Background())
	w.stop = stop
	w.ended.Go(func() { w.run(ctx) })
	return w
}

func (w *sweeper) close() {
	w.stop()
	w.ended.Wait()
}

func (w *sweeper) run(ctx context.Context) {
	ticker := time.NewTicker(w.store.config.SweepEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		for range sweepRounds {
			if more, err := w.sweep(ctx); err != nil || !more {
				break // the next tick tries again
			}
		}
	}
}

// sweep removes full buckets from a part of the table, and reports whether the part has more.
func (w *sweeper) sweep(ctx context.Context) (more bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, w.store.config.Timeout)
	defer cancel()
	conn, err := w.store.pool.Acquire(ctx)
	if err != nil {
		return false, err
	}
	defer conn.Release()
	var p packet
	p.addInt(int64(math.Float64bits(w.part)))
	p.addInt(w.pages)
	p.beginParam()
	p.appendWord(sweepRows)
	swept, share := int64(-1), 0.0
	err = w.store.query(ctx, conn.Conn(), &w.store.statements.sweep, p.end(), func(row [][]byte) {
		if len(row) == 2 && len(row[0]) == 8 && len(row[1]) == 8 {
			swept, _ = readInt(row[0])
			share = math.Float64frombits(binary.BigEndian.Uint64(row[1]))
		}
	})
	if err != nil || swept < 0 {
		return false, err
	}
	w.swept.Add(swept)
	if err := w.sweepHolds(ctx, conn.Conn()); err != nil {
		return false, err
	}
	if swept >= sweepRows {
		return true, nil
	}
	if w.part += share; w.part >= 1 {
		w.part = 0
	}
	// Larger tables are read in larger parts.
	w.pages = max(sweepPages, int64(math.Ceil(float64(w.pages)/max(share, 1e-9)*sweepPart)))
	return false, nil
}

// sweepHolds removes holds that have ended longer than RetryHorizon ago.
func (w *sweeper) sweepHolds(ctx context.Context, conn *pgx.Conn) error {
	var p packet
	p.beginParam()
	p.appendWord(sweepRows)
	return w.store.query(ctx, conn, &w.store.statements.sweepHolds, p.end(), discardRow)
}
