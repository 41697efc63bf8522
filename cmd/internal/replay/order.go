// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"fmt"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/cmd/internal/prose"
)

// An order counts the requests that are older than the one before them.
type order struct {
	some             bool // requests there were
	previous, newest bucket.Instant
	earlier          int64
	lag              bucket.Instant // the most that one of those is behind the newest
}

func (o *order) add(at bucket.Instant) {
	if o.some && at < o.previous {
		o.earlier++
		o.lag = max(o.lag, o.newest-at)
	}
	if !o.some || at > o.newest {
		o.newest = at
	}
	o.some, o.previous = true, at
}

// warning says how far all of the requests are out of order, and what to do. It is empty
// where they are in order.
func (o *order) warning(all int64) string {
	if o.earlier == 0 {
		return ""
	}
	return fmt.Sprintf("%s older than the one before (%s), by up to %s; inside a bucket time stands still for them; --sort replays by time",
		prose.Count(o.earlier, "request is", "requests are"), percent(o.earlier, all), lasting(o.lag))
}
