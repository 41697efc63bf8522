// SPDX-License-Identifier: Apache-2.0

package calls_test

import (
	"errors"
	"testing"
	"time"

	"github.com/metehq/mete/internal/calls"
)

func TestCounts(t *testing.T) {
	var c calls.Counts
	c.Add(3, 5*time.Microsecond, nil)
	c.Add(1, 0, errors.New("gone"))
	c.Add(1<<30, 24*time.Hour, nil)
	got := c.Read()
	if got.Calls != 3 || got.Asks != 4+1<<30 || got.Failed != 1 {
		t.Errorf("%d calls, %d asks, %d failed, want 3, %d, 1", got.Calls, got.Asks, got.Failed, int64(4+1<<30))
	}
	want := calls.Histogram{Sum: 5 + (24 * time.Hour).Microseconds()}
	want.Counts[0], want.Counts[3], want.Counts[len(want.Counts)-1] = 1, 1, 1
	if got.Latency != want {
		t.Errorf("latency %v, want %v", got.Latency, want)
	}
	want = calls.Histogram{Sum: 4 + 1<<30}
	want.Counts[1], want.Counts[2], want.Counts[len(want.Counts)-1] = 1, 1, 1
	if got.Batch != want {
		t.Errorf("batch %v, want %v", got.Batch, want)
	}
}
