// SPDX-License-Identifier: Apache-2.0

package violations

import "time"

// complaintInterval is the time between two complaints about one thing.
const complaintInterval = time.Minute

// A complaint is something that is logged when it begins, and from time to time
// while it lasts.
type complaint struct {
	last  time.Time // zero while all is well
	count int64
}

// due says whether it is time to complain.
func (c *complaint) due() bool {
	if now := time.Now(); c.last.IsZero() || now.Sub(c.last) >= complaintInterval {
		c.last = now
		return true
	}
	return false
}

// over says whether there was something to complain about, which is over.
func (c *complaint) over() bool {
	was := !c.last.IsZero()
	c.last = time.Time{}
	return was
}

// grown says whether it is time to complain that a number has grown.
func (c *complaint) grown(n int64) bool {
	if n <= c.count {
		return false
	}
	c.count = n
	return c.due()
}
