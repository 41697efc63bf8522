// SPDX-License-Identifier: Apache-2.0

package pgstore_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/proctest"
	"github.com/metehq/mete/internal/testseed"
	"github.com/metehq/mete/pgstore"
)

// TestSweep_KeepsTablesFlat has constantly new clients with buckets that are soon full, and a few that stay. The
// tables and their indexes do not grow on disk after the first third.
func TestSweep_KeepsTablesFlat(t *testing.T) {
	p := proctest.StartPostgres(t, "autovacuum_naptime=1s")
	pool := poolTo(t, p.URL())
	schema := migrated(t, pool)
	s := open(t, pool, pgstore.Config{Schema: schema, SweepEvery: 20 * time.Millisecond, Timeout: awhile})
	long := lasts(t, 6*time.Second)
	ctx, cancel := context.WithTimeout(t.Context(), long)
	defer cancel()
	patient, stop := context.WithTimeout(t.Context(), long+awhile)
	defer stop()
	var goal atomic.Int64 // how many rows swept mean something, however slow the machine
	goal.Store(math.MaxInt64)
	var all sync.WaitGroup
	short, hot := tokens(t, 10, "10/100ms"), tokens(t, 1000, "500/1s")
	for g := range 8 {
		r := rand.New(testseed.PCG(uint64(g), 21))
		all.Go(func() {
			for n := 0; ctx.Err() == nil || s.Stats().Swept < goal.Load() && patient.Err() == nil; n++ {
				charges, mode := of(short, 1, fmt.Sprintf("v%016x", r.Uint64())), mete.Mode{}
				switch n % 8 {
				case 0, 1, 2:
					charges = of(hot, 1, fmt.Sprintf("hot%02d", r.IntN(50)))
				case 3: // both, in the order of the keys
					charges = append(of(hot, 1, fmt.Sprintf("hot%02d", r.IntN(50))), charges...)
				case 4:
					charges[0].Key = fmt.Sprintf("w%d:%09d", g, n) // one after another
				}
				if _, _, err := s.Take(context.Background(), nil, charges, mode); err != nil {
					t.Errorf("take: %v", err)
					return
				}
			}
		})
	}
	size := func() int64 {
		return number(t, pool, "SELECT pg_total_relation_size($1::regclass)", schema+".bucket")
	}
	third, done := context.WithTimeout(t.Context(), long/3)
	defer done()
	<-third.Done()
	until(t, func() error {
		if s.Stats().Swept == 0 {
			return errors.New("no rows were swept")
		}
		return nil
	})
	early, sweptEarly := size(), s.Stats().Swept
	goal.Store(2 * sweptEarly)
	all.Wait()
	late, stats := size(), s.Stats()
	if stats.Swept < sweptEarly*2 {
		t.Errorf("%d rows were swept in a third of the time, %d in all: the run is too short to mean anything", sweptEarly, stats.Swept)
	}
	// A row and its index entry take 130 bytes, so a leak would show. On a busy machine, the reused space grows for a
	// while. If few rows are swept on a slow machine, most of them were swept before the first vacuum.
	const telling = 10_000
	if late > 2*early && late > 100*stats.Swept && stats.Swept > telling {
		t.Errorf("%d bytes after %v, %d after %v, and %d rows swept: want no growth", early, long/3, late, long, stats.Swept)
	}
	t.Logf("%d asks, %d rows swept, %d bytes, %d in the end", stats.Asks, stats.Swept, early, late)
	// At the end, only buckets that are not full have rows.
	until(t, func() error {
		if n := number(t, pool, "SELECT count(*) FROM "+schema+".bucket"); n > 0 {
			return fmt.Errorf("%d rows are left", n)
		}
		return nil
	})
	holds(t, s, "hot00", hot, 1000*bucket.Token)
}
