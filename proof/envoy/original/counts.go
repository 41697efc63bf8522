// SPDX-License-Identifier: Apache-2.0

package main

import (
	"maps"
	"sync"
)

// counts adds up the increments of counters that the original sends to its statistics server.
type counts struct {
	mu     sync.Mutex
	values map[string]uint64
}

func (c *counts) FlushCounter(name string, value uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.values[name] += value
}

func (c *counts) FlushGauge(string, uint64)  {}
func (c *counts) FlushTimer(string, float64) {}
func (c *counts) Flush()                     {}

func (c *counts) copy() map[string]uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.values)
}
