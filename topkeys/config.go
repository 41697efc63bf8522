// SPDX-License-Identifier: Apache-2.0

package topkeys

import (
	"fmt"
	"time"
)

const (
	// DefaultCounters and MaxCounters are the default and the maximum of [Config.Counters].
	DefaultCounters = 100
	MaxCounters     = 1000

	// DefaultWindow, MinWindow and MaxWindow are the default and the bounds of [Config.Window].
	DefaultWindow = time.Minute
	MinWindow     = time.Second
	MaxWindow     = 24 * time.Hour

	// MaxKeyBytes bounds the length of stored keys. Longer keys are shortened: see [Key.Cut].
	MaxKeyBytes = 160

	// MaxBytes bounds the memory of a tracker's counters. A rule with few keys takes about 7 KB per kind of
	// record. A flooded rule takes 77 KB with 100 counters, and up to Lanes times as much if all processors record
	// at the same time. At the bound, new rules are not counted, except in [Stats.Dropped], and other rules have
	// fewer counters.
	MaxBytes = 64 << 20

	// MaxRules bounds the rules of a tracker. Records of additional rules are counted in [Stats.Dropped].
	MaxRules = 10_000

	// Lanes bounds the concurrent records of one rule and kind. Excess records are dropped and counted.
	Lanes = 8
)

// A window has two completed parts, each with a summary, plus the current part.
const (
	halves = 2
	parts  = halves + 1
)

// Config holds the settings of a [Tracker]. The zero value is valid.
type Config struct {
	// Counters is the number of keys that are counted per rule and [Kind], 1 to MaxCounters. Zero means
	// DefaultCounters. It is m in the guarantee.
	Counters int

	// Window is the minimum time range of a list. The range is at most 50% longer. Zero means DefaultWindow.
	Window time.Duration
}

func (c *Config) validate() error {
	if c.Counters == 0 {
		c.Counters = DefaultCounters
	}
	if c.Window == 0 {
		c.Window = DefaultWindow
	}
	switch {
	case c.Counters < 0 || c.Counters > MaxCounters:
		return fmt.Errorf("counters %d: must be between 1 and %d, or 0", c.Counters, MaxCounters)
	case c.Window < MinWindow || c.Window > MaxWindow:
		return fmt.Errorf("window %v: must be between %v and %v, or 0", c.Window, MinWindow, MaxWindow)
	}
	return nil
}
