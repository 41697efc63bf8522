// SPDX-License-Identifier: Apache-2.0

package calendars_test

import (
	"errors"
	"testing"
	"time"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/calendars"
)

const day = bucket.Instant(86_400_000_000)

func daily(t *testing.T, capacity bucket.Tokens) *bucket.Limit {
	t.Helper()
	l, _, err := bucket.Spec{
		Algorithm: bucket.AlgorithmStepped, Anchor: bucket.AnchorCalendar, Calendar: bucket.Calendar{Window: bucket.CalendarDay},
		Rate: bucket.Rate{Tokens: 1, Per: 24 * time.Hour}, Capacity: capacity,
	}.Compile()
	if err != nil {
		t.Fatal(err)
	}
	return &l
}

// check compares the windows of a call with one limit.
func check(t *testing.T, c *calendars.Call, reach, wantReach int64, from, to bucket.Instant) {
	t.Helper()
	c.Each(reach, func(name string, reach int64, starts []bucket.Instant) {
		first, last := starts[0], starts[len(starts)-1]
		if name != "x" || reach != wantReach || first != from || last != to || len(starts) != int((to-from)/day)+1 {
			t.Errorf("%s with reach %d: %d starts from day %d to day %d, want from %d to %d", name, reach, len(starts), first/day, last/day, from/day, to/day)
		}
	})
	if c.Len() != 1 {
		t.Errorf("%d limits, want 1", c.Len())
	}
}

func TestCall(t *testing.T) {
	noon := 20_000*day + day/2
	var c calendars.Call
	c.Reset(noon)
	c.Add("y", new(bucket.Limit)) // has no calendar
	c.Add("x", daily(t, 1))
	check(t, &c, -1, 0, 19_998*day, 20_002*day)
	check(t, &c, int64(3*day), int64(3*day), 19_998*day, 20_005*day)

	c.Reset(noon)
	c.Add("x", daily(t, 5))
	check(t, &c, 0, 0, 19_994*day, 20_002*day)
	c.AddTaken("x", daily(t, 5), noon-20*day)
	check(t, &c, 0, 0, 19_980*day, 20_002*day)
	c.Learn(noon + 7*day) // the store's clock
	if err := c.Need("x", "day.0.1.0000.UTC", noon+7*day); err != nil {
		t.Fatal(err)
	}
	check(t, &c, 0, 0, 19_980*day, 20_009*day)
	if err := c.Need("z", "day.0.1.0000.Europe/Atlantis", 0); !errors.Is(err, bucket.ErrCalendar) {
		t.Errorf("unknown zone: %v", err)
	}

	c.Reset(noon)
	c.AddTaken("x", daily(t, 1), 1) // only so many windows can matter
	check(t, &c, int64(bucket.LongestWait/time.Microsecond), 0, 18_992*day, 18_992*day+2*1008*day)
}
