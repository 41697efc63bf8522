// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"time"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/cmd/internal/prose"
)

// waitBounds are what waits are told apart by: a wait counts under the first that it is
// below.
var waitBounds = [...]time.Duration{
	10 * time.Millisecond, 100 * time.Millisecond, time.Second, 10 * time.Second, time.Minute, 10 * time.Minute, time.Hour,
}

// waits counts how long those who were denied had to wait: the last two are an hour and
// longer, and never.
type waits [len(waitBounds) + 2]int64

func (w *waits) add(d time.Duration) {
	for i, bound := range waitBounds {
		if d < bound {
			w[i]++
			return
		}
	}
	if d == bucket.Never {
		w[len(waitBounds)+1]++
		return
	}
	w[len(waitBounds)]++
}

// waitName says which waits are counted there.
func waitName(i int) string {
	switch {
	case i == 0:
		return "below " + prose.Duration(waitBounds[0])
	case i < len(waitBounds):
		return prose.Duration(waitBounds[i-1]) + " to " + prose.Duration(waitBounds[i])
	case i == len(waitBounds):
		return prose.Duration(waitBounds[i-1]) + " or more"
	}
	return "no wait helps"
}
