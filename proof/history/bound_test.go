// SPDX-License-Identifier: Apache-2.0

package history_test

import (
	"cmp"
	"context"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/testseed"
	"github.com/metehq/mete/memstore"
	"github.com/metehq/mete/store"
)

// The model of histories has no refill. Here buckets refill fast, and the check is the bound: in any interval, at most the
// capacity plus rate·t is admitted. The store decides a take at some instant between its invocation and its return. The costs
// of all takes that lie within an interval therefore count there.

const boundCapacity = 5 * token

// A boundWorld is a store with a rate that its clients use up.
type boundWorld struct {
	*world
	perSecond bucket.Tokens
	takes     int           // of each client
	drift     time.Duration // between the clocks of the test and the store
	disturb   func(*rand.Rand)
}

// A grant is an admitted take.
type grant struct {
	call, end time.Duration
	cost      int64
}

// excess returns the largest sum of costs in an interval, less its bound.
func (w *boundWorld) excess(grants []grant) (worst int64) {
	worst = -boundCapacity
	slices.SortFunc(grants, func(a, b grant) int { return cmp.Compare(a.end, b.end) })
	for _, first := range grants {
		sum := int64(0)
		for _, g := range grants {
			if g.call >= first.call {
				sum += g.cost
				refill := w.perSecond * bucket.Tokens(g.end-first.call+w.drift) / bucket.Tokens(time.Second)
				worst = max(worst, sum-boundCapacity-int64(refill))
			}
		}
	}
	return worst
}

// A backwardClock runs with the clock of the process, and steps back at times. It never catches up.
type backwardClock struct {
	began time.Time
	late  atomic.Int64 // microseconds
}

func (c *backwardClock) now() bucket.Instant {
	return bucket.Instant(1e15 + time.Since(c.began).Microseconds() - c.late.Load())
}

// TestBound checks the bound of stores in memory and in Redis, and in a long test also of PostgreSQL.
func TestBound(t *testing.T) {
	back := &backwardClock{began: time.Now()}
	t.Run("memory, clock steps back", func(t *testing.T) {
		s, err := memstore.New(memstore.Config{Now: back.now})
		if err != nil {
			t.Fatal(err)
		}
		checkBound(t, &boundWorld{
			&world{stores: []store.Store{s}}, 100_000 * token, 1000, 2 * time.Microsecond,
			func(r *rand.Rand) { back.late.Add(r.Int64N(20)) },
		})
	})
	t.Run("memory", func(t *testing.T) {
		checkBound(t, &boundWorld{startMemory(t, false), 100_000 * token, 1000, 2 * time.Microsecond, nil})
	})
	t.Run("redis", func(t *testing.T) {
		checkBound(t, &boundWorld{startRedis(t, true), 300 * token, 60, 2 * time.Millisecond, nil})
	})
	if os.Getenv("METE_TEST_LONG") != "" || *runFor > 0 {
		t.Run("postgres", func(t *testing.T) {
			checkBound(t, &boundWorld{startPostgres(t, true), 300 * token, 120, 2 * time.Millisecond, nil})
		})
	}
}

// checkBound also requires that the clients use the refill up. How close an interval comes to its bound depends on the machine:
// see TestBound_Sabotage.
func checkBound(t *testing.T, w *boundWorld) {
	admitted, denied := w.takeFast(t, w.perSecond)
	for key, d := range denied {
		total := int64(0)
		for _, g := range admitted[key] {
			total += g.cost
		}
		got := w.excess(admitted[key])
		t.Logf("%s: %d takes admitted and %d denied, and the fullest interval admits %d thousandths less than its bound", key, len(admitted[key]), d, -got)
		if got > 0 {
			t.Errorf("%s: an interval admits %d thousandths of a token more than capacity + rate·t", key, got)
		}
		if total < 2*boundCapacity || d == 0 {
			t.Errorf("%s: %d thousandths admitted and %d takes denied, want at least %d and 1", key, total, d, 2*boundCapacity)
		}
	}
}

// TestBound_Sabotage checks that the takes come so close to the bound that they show a refill that is three times as fast.
func TestBound_Sabotage(t *testing.T) {
	w := &boundWorld{startMemory(t, false), 100_000 * token, 1000, 2 * time.Microsecond, nil}
	admitted, _ := w.takeFast(t, 3*w.perSecond)
	if got := max(w.excess(admitted["bound a"]), w.excess(admitted["bound b"])); got <= 0 {
		t.Errorf("the fullest interval admits %d thousandths less than its bound, want more than the bound", -got)
	}
}

// takeFast lets all clients take from two keys with this refill. It returns the admitted takes of each, and the number of takes
// that each has denied.
func (w *boundWorld) takeFast(t *testing.T, perSecond bucket.Tokens) (admitted map[string][]grant, denied map[string]int) {
	l, err := bucket.NewLimit(boundCapacity, bucket.PerSecond(perSecond))
	if err != nil {
		t.Fatal(err)
	}
	stores := w.stores
	if w.open != nil {
		stores = w.open(t, time.Minute)
	}
	var mu sync.Mutex
	admitted, denied = map[string][]grant{}, map[string]int{"bound a": 0, "bound b": 0}
	began := time.Now()
	var all sync.WaitGroup
	for i := range clients {
		r := rand.New(testseed.PCG(7, uint64(i)))
		s := stores[i%len(stores)]
		all.Go(func() {
			for range w.takes {
				if w.disturb != nil && r.IntN(20) == 0 {
					w.disturb(r)
				}
				charges := []store.Charge{{Key: "bound a", Limit: l}, {Key: "bound b", Limit: l}}
				keys := [][2]int{{0, 1}, {1, 2}, {0, 2}}[r.IntN(3)]
				charges = charges[keys[0]:keys[1]]
				for i := range charges {
					charges[i].Cost = bucket.Tokens(token * (1 + r.IntN(3)))
				}
				call := time.Since(began)
				snaps, allowed, err := s.Take(context.Background(), nil, charges, mete.Mode{UpTo: r.IntN(3) == 0})
				end := time.Since(began)
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				for i := range snaps {
					if key := charges[i].Key; allowed {
						admitted[key] = append(admitted[key], grant{call, end, int64(snaps[i].Cost)})
					} else if !snaps[i].Allowed {
						denied[key]++
					}
				}
				mu.Unlock()
			}
		})
	}
	all.Wait()
	return admitted, denied
}

// TestBound_Excess checks the check.
func TestBound_Excess(t *testing.T) {
	const ms = time.Millisecond
	w := &boundWorld{perSecond: 1000 * token}
	for i, grants := range [][]grant{
		{{0, ms, 3 * token}, {ms, 2 * ms, 4 * token}},
		{{0, 90 * ms, 6 * token}, {100 * ms, 101 * ms, 5 * token}, {102 * ms, 103 * ms, 3 * token}},
	} {
		if got := w.excess(grants); got != 0 {
			t.Errorf("case %d: %d, want 0", i, got)
		}
		grants[1].cost++
		if got := w.excess(grants); got != 1 {
			t.Errorf("case %d with one more: %d, want 1", i, got)
		}
	}
}
