// SPDX-License-Identifier: Apache-2.0

package lane_test

import (
	"strings"
	"testing"
	"time"

	"github.com/metehq/mete/internal/lane"
)

func TestBounds_Or(t *testing.T) {
	defaults := lane.Bounds{MaxBatch: 1, MaxQueue: 2, MaxInFlight: 3, Timeout: time.Second}
	if got, err := (lane.Bounds{}).WithDefaults(defaults); got != defaults || err != nil {
		t.Errorf("got %+v, %v, want the defaults", got, err)
	}
	given := lane.Bounds{MaxBatch: 9, MaxQueue: 8, MaxInFlight: 7, Timeout: time.Minute}
	if got, err := given.WithDefaults(defaults); got != given || err != nil {
		t.Errorf("got %+v, %v, want %+v", got, err, given)
	}
	for name, b := range map[string]lane.Bounds{"MaxBatch": {MaxBatch: -1}, "MaxQueue": {MaxQueue: -1}, "MaxInFlight": {MaxInFlight: -1}, "timeout": {Timeout: -1}} {
		if _, err := b.WithDefaults(defaults); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%+v: got error %v, want %s in it", b, err, name)
		}
	}
}
