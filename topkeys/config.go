// SPDX-License-Identifier: Apache-2.0

package topkeys

import (
	"fmt"
	"time"
)

const (
	// DefaultCounters and MaxCounters are the m of a summary: [Config.Counters].
	DefaultCounters = 100
	MaxCounters     = 1000

	// DefaultWindow is how much time a list is about, and MinWindow and MaxWindow
	// what that may be: [Config.Window].
	DefaultWindow = time.Minute
	MinWindow     = time.Second
	MaxWindow     = 24 * time.Hour

	// MaxKeyBytes bounds the keys that are kept. Of a longer one the beginning is,
	// with a hash of all of it: see [Key.Cut].
	MaxKeyBytes = 160

	// MaxBytes bounds the memory of the counters of a tracker. A rule with few keys
	// takes 7 KB or so for each kind of record; one that is flooded with keys takes,
	// with 100 counters, 77 KB, and up to Lanes times as much where all processors do
	// it at once. What is needed beyond is done without: rules that are new then are
	// not counted, but in [Stats.Dropped], and others have fewer counters.
	MaxBytes = 64 << 20

	// MaxRules bounds the rules of a tracker. Records of further ones are dropped,
	// and counted in [Stats.Dropped].
	MaxRules = 10_000

	// Lanes is how many records of one rule and one kind can be made in the same
	// moment. One more is dropped, and counted.
	Lanes = 8
)

// halves is how many parts a window has, each with a summary, and one more for the
// part that is not over.
const (
	halves = 2
	parts  = halves + 1
)

// Config are the settings of a [Tracker]. The zero value is ready for use.
type Config struct {
	// Counters is how many keys are counted at a time, for each rule and [Kind], 1 to
	// MaxCounters; 0 is DefaultCounters. It is the m of the guarantee.
	Counters int

	// Window is how much time a list is about, at least; it is at most half as long
	// again. 0 is DefaultWindow.
	Window time.Duration
}

func (c *Config) complete() error {
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
