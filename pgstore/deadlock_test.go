// SPDX-License-Identifier: Apache-2.0

package pgstore_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/proctest"
	"github.com/metehq/mete/internal/testseed"
	"github.com/metehq/mete/pgstore"
	"github.com/metehq/mete/store"
	"github.com/metehq/mete/storetest"
)

// TestTake_NoDeadlock has 64 writers run all operations on one, few and many buckets, in two stores that both
// sweep, like two processes. Nothing fails, and PostgreSQL detects no deadlock. At the end, exactly the spent
// tokens are missing.
func TestTake_NoDeadlock(t *testing.T) {
	t.Parallel()
	p := proctest.StartPostgres(t)
	for _, rows := range []int{1, 3, 10_000} {
		t.Run(fmt.Sprint(rows), func(t *testing.T) {
			pool := poolTo(t, p.URL())
			c := &crowd{schema: migrated(t, pool), rows: rows, kept: make([]atomic.Int64, rows)}
			// The limit refills a thousandth per hour.
			c.limit = compiled(t, bucket.Spec{Capacity: 2000 * bucket.Token, Rate: bucket.Rate{Tokens: 1, Per: time.Hour}})
			ctx, cancel := context.WithTimeout(t.Context(), lasts(t, 4500*time.Millisecond)/3)
			defer cancel()
			patient, stop := context.WithTimeout(t.Context(), awhile)
			defer stop()
			var all sync.WaitGroup
			for i := range 2 {
				own := poolTo(t, p.URL())
				s := open(t, own, pgstore.Config{Schema: c.schema, SweepEvery: often, Timeout: awhile, MaxBatch: 16})
				for g := range 32 {
					w := &writer{crowd: c, store: s, name: fmt.Sprint(i, "-", g), r: rand.New(testseed.PCG(uint64(i), uint64(g)))}
					all.Go(func() {
						for (ctx.Err() == nil || c.taken.Load() < enough && patient.Err() == nil) && !t.Failed() {
							w.turn(t)
						}
					})
				}
			}
			all.Wait()
			c.check(t, open(t, pool, pgstore.Config{Schema: c.schema, SweepEvery: -1, Timeout: awhile}))
		})
	}
	pool := poolTo(t, p.URL())
	until(t, func() error { // each writer reports its number of takes
		if n := number(t, pool, "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'"); n > 1 {
			return fmt.Errorf("%d connections are still there", n)
		}
		return nil
	})
	if n := number(t, pool, "SELECT sum(deadlocks)::bigint FROM pg_stat_database"); n != 0 {
		t.Errorf("%d deadlocks", n)
	}
}

// A slow machine must also do enough takes to be significant.
const enough = 500

// A crowd is the shared state of the writers.
type crowd struct {
	schema string
	rows   int
	limit  bucket.Limit
	kept   []atomic.Int64 // per bucket: taken and not refunded
	denied atomic.Int64
	taken  atomic.Int64
}

func (c *crowd) check(t *testing.T, s *pgstore.Store) {
	t.Helper()
	if c.taken.Load() < enough {
		t.Errorf("%d takes are too few to mean anything", c.taken.Load())
	}
	t.Logf("%d taken, %d denied", c.taken.Load(), c.denied.Load())
	for i := range c.kept {
		if n := bucket.Tokens(c.kept[i].Load()); n > 0 || i < 100 {
			holds(t, s, keyOf(i), c.limit, c.limit.Capacity()-n)
		}
	}
}

func keyOf(i int) string { return fmt.Sprintf("k%05d", i) }

// A writer is one of the goroutines of TestTake_NoDeadlock.
type writer struct {
	*crowd
	store *pgstore.Store
	name  string
	r     *rand.Rand
	turns int
	owned []store.Charge // taken by this writer, to be refunded
}

// turn performs a random operation.
func (w *writer) turn(t *testing.T) {
	w.turns++
	var err error
	switch n := w.r.IntN(16); {
	case n == 0:
		err = w.store.Reset(context.Background(), w.others())
	case n < 5 && len(w.owned) > 0:
		err = w.refund()
	default:
		err = w.take()
	}
	if err != nil {
		t.Errorf("writer %s, turn %d: %v", w.name, w.turns, err)
	}
}

// others are keys that are reset; their content is not compared.
func (w *writer) others() []string {
	var keys []string
	for range 1 + w.r.IntN(3) {
		keys = append(keys, fmt.Sprintf("j%d", w.r.IntN(min(w.rows, 20))))
	}
	return keys
}

func (w *writer) refund() error {
	slices.SortFunc(w.owned, byKey)
	back := w.owned[:0:0]
	for _, c := range w.owned {
		if len(back) == 0 || back[len(back)-1].Key != c.Key {
			back = append(back, c)
		} else {
			back[len(back)-1].Cost += c.Cost
		}
	}
	w.owned = w.owned[:0]
	if err := w.store.Refund(context.Background(), storetest.Refunds(back...), ""); err != nil {
		return err
	}
	for _, c := range back {
		w.kept[w.number(c.Key)].Add(-int64(c.Cost))
	}
	return nil
}

func (w *writer) number(key string) (i int) {
	fmt.Sscanf(key, "k%d", &i)
	return i
}

func byKey(a, b store.Charge) int {
	switch {
	case a.Key < b.Key:
		return -1
	case a.Key > b.Key:
		return 1
	}
	return 0
}

func (w *writer) take() error {
	charges, mode := w.charges(), w.mode()
	snaps, allowed, err := w.store.Take(context.Background(), nil, charges, mode)
	if err != nil {
		return err
	}
	if mode.ID != "" && allowed { // the answer was lost
		again, allowed, err := w.store.Take(context.Background(), nil, charges, mode)
		if err != nil || !allowed || !slices.Equal(again, snaps) {
			return fmt.Errorf("take %q came again: allowed %v, %+v, %w; want %+v", mode.ID, allowed, again, err, snaps)
		}
	}
	if !allowed || mode.DryRun {
		w.denied.Add(1)
		return nil
	}
	w.taken.Add(1)
	for i, c := range charges {
		if c.Key[0] == 'j' {
			continue
		}
		kept := w.kept[w.number(c.Key)].Add(int64(snaps[i].Cost))
		// Some tokens are never refunded, but the bucket must not stay empty.
		if c.Cost = snaps[i].Cost; kept > int64(w.limit.Capacity()/2) || w.r.IntN(4) > 0 {
			w.owned = append(w.owned, c)
		}
	}
	return nil
}

// charges returns charges of one to five buckets.
func (w *writer) charges() []store.Charge {
	var keys []string
	for range 1 + max(w.r.IntN(8)-3, 0) {
		keys = append(keys, keyOf(w.r.IntN(w.rows)))
	}
	if w.r.IntN(4) == 0 {
		keys = append(keys, w.others()...)
	}
	slices.Sort(keys)
	charges := of(w.limit, 1, slices.Compact(keys)...)
	for i := range charges {
		charges[i].Cost = bucket.Tokens(1 + w.r.IntN(3000))
	}
	if w.r.IntN(3) > 0 {
		charges[0].Cost = bucket.Token // combined with other takes
	}
	return charges
}

func (w *writer) mode() (mode mete.Mode) {
	switch w.r.IntN(10) {
	case 0:
		mode.ID = fmt.Sprintf("%s-%d", w.name, w.turns)
	case 1:
		mode.UpTo = true
	case 2:
		mode.DryRun = true
	case 3:
		mode.MaxWait = time.Millisecond
	case 4:
		mode.ID, mode.UpTo = fmt.Sprintf("%s-%d", w.name, w.turns), true
	}
	return mode
}
