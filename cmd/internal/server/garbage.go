// SPDX-License-Identifier: Apache-2.0

package server

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
)

// minHeap is the least heap that Go collects, at 100 percent.
const minHeap = 4 << 20

// A collector has Go's collector wait for some garbage. It runs whenever the heap has
// doubled, which it has after some thousand requests while few buckets are kept: dozens
// of times a second, to find that next to nothing is alive. The setting is the process's.
type collector struct {
	garbage uint64

	mu      sync.Mutex // guards the fields below, and the setting
	percent int        // as it was set last
	ended   bool
}

// keepGarbage lets at least so many bytes of garbage lie, until the function that it
// returns is called. Of 0, and where the operator says how to collect, it does nothing.
func keepGarbage(bytes int) (end func()) {
	if bytes == 0 || os.Getenv("GOGC") != "" {
		return func() {}
	}
	c := &collector{garbage: uint64(bytes), percent: 100}
	c.adjust()
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.ended = true
		debug.SetGCPercent(100)
	}
}

// A cycle dies with the collection it has seen the beginning of.
type cycle struct{ _ *cycle }

// adjust goes by what the last collection has left, and is called again after the next.
func (c *collector) adjust() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		return
	}
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(live)
	if percent := c.percentFor(live[0].Value.Uint64()); percent != c.percent {
		c.percent = percent
		debug.SetGCPercent(percent)
	}
	runtime.AddCleanup(new(cycle), (*collector).adjust, c)
}

// percentFor is how much the heap may grow over what is alive, in percent: by the garbage
// or, where that is more, by as much again. It multiplies the least heap, too.
func (c *collector) percentFor(live uint64) int {
	percent := c.garbage * 100 / max(live, minHeap)
	return int(max(percent, 100))
}
