// SPDX-License-Identifier: Apache-2.0

package violations

import "time"

const problemInterval = time.Minute

// A problem is logged when it begins, and at intervals while it lasts.
type problem struct {
	last  time.Time // time of the last event; zero if there is no problem
	count int64
}

func (c *problem) shouldLog() bool {
	if now := time.Now(); c.last.IsZero() || now.Sub(c.last) >= problemInterval {
		c.last = now
		return true
	}
	return false
}

// end ends the problem, and reports whether there was one.
func (c *problem) end() bool {
	was := !c.last.IsZero()
	c.last = time.Time{}
	return was
}

// shouldLogGrowth reports whether n has grown, and the growth should be logged now.
func (c *problem) shouldLogGrowth(n int64) bool {
	if n <= c.count {
		return false
	}
	c.count = n
	return c.shouldLog()
}
