// SPDX-License-Identifier: Apache-2.0

package violations

import "time"

// problemInterval is the interval between two log events of one problem.
const complaintInterval = time.Minute

// A problem is logged when it begins, and at intervals while it lasts.
type complaint struct {
	last  time.Time // time of the last event; zero if there is no problem
	count int64
}

// shouldLog reports whether to log the problem now.
func (c *complaint) due() bool {
	if now := time.Now(); c.last.IsZero() || now.Sub(c.last) >= complaintInterval {
		c.last = now
		return true
	}
	return false
}

// end ends the problem, and reports whether there was one.
func (c *complaint) over() bool {
	was := !c.last.IsZero()
	c.last = time.Time{}
	return was
}

// shouldLogGrowth reports whether n has grown, and the growth should be logged now.
func (c *complaint) grown(n int64) bool {
	if n <= c.count {
		return false
	}
	c.count = n
	return c.due()
}
