// SPDX-License-Identifier: Apache-2.0

package faulttest

import (
	"testing"
	"time"
)

func TestStalled(t *testing.T) {
	at := func(ms int) time.Time { return time.Unix(0, 0).Add(time.Duration(ms) * time.Millisecond) }
	stalls := []stall{{at(10), at(20)}, {at(30), at(60)}}
	for _, tc := range []struct{ began, ended, want int }{
		{0, 100, 40}, {0, 10, 0}, {12, 15, 3}, {15, 40, 15}, {60, 90, 0}, {20, 30, 0},
	} {
		if got := stalled(stalls, at(tc.began), at(tc.ended)); got != time.Duration(tc.want)*time.Millisecond {
			t.Errorf("from %d to %d: %v, want %d ms", tc.began, tc.ended, got, tc.want)
		}
	}
}
