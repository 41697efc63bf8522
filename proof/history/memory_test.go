// SPDX-License-Identifier: Apache-2.0

package history_test

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/memstore"
	"github.com/metehq/mete/store"
)

var allKeys = []string{"a", "b", "c"}

// A clock is the clock of a store in memory. It stands still between steps, and steps between two calls: a call during a
// step could use the time before it or after it.
type clock struct {
	sync.RWMutex // write-locked during a step
	instant      atomic.Int64
}

func (c *clock) now() bucket.Instant { return bucket.Instant(c.instant.Load()) }

// startMemory returns a store with the clock of the process, or with one that the fault steps ahead.
func startMemory(t testing.TB, stepped bool) *world {
	w := &world{name: "memory", keys: allKeys, slotKey: "s", versions: true, slots: true, holds: true, rounds: true}
	config := memstore.Config{}
	w.faults = []fault{{"no fault", quiet, func(*run) {}}}
	if stepped {
		w.clock = &clock{}
		w.clock.instant.Store(bucket.At(time.Now()).Time().UnixMicro())
		config.Now, w.name = w.clock.now, "memory with a clock that steps"
		w.faults = []fault{{"clock steps ahead", quiet, stepClock}}
	}
	s, err := memstore.New(config)
	if err != nil {
		t.Fatal(err)
	}
	w.stores = []store.Store{s}
	return w
}

// stepClock lets IDs, slots and holds expire.
func stepClock(r *run) {
	for range 1 + r.rand.IntN(4) {
		const step = 35 * 60 * 1_000_000
		r.event(tick, step, func() {
			r.world.clock.Lock()
			defer r.world.clock.Unlock()
			r.world.clock.instant.Add(step)
		})
		r.await(r.rand.IntN(30))
	}
}
