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
		if got := stalledTime(stalls, at(tc.began), at(tc.ended)); got != time.Duration(tc.want)*time.Millisecond {
			t.Errorf("from %d to %d: %v, want %d ms", tc.began, tc.ended, got, tc.want)
		}
	}
}

func TestStalledShare(t *testing.T) {
	at := func(ms int) time.Time { return time.Unix(0, 0).Add(time.Duration(ms) * time.Millisecond) }
	for _, tc := range []struct {
		stalls []stall
		want   float64
	}{
		{nil, 0},
		{[]stall{{at(0), at(25)}, {at(90), at(200)}}, 0.35}, // of the calls alone
		{[]stall{{at(0), at(200)}}, 0.7},                    // and never all
	} {
		tr := &Traffic{stalls: tc.stalls, Takers: []*Taker{
			{Calls: []Call{{Began: at(50), Ended: at(100)}}}, {Calls: []Call{{Began: at(15), Ended: at(25)}, {Began: at(30), Ended: at(115)}}},
		}}
		if got := tr.stalledShare(); got != tc.want {
			t.Errorf("stalls %v: %v of the time, want %v", tc.stalls, got, tc.want)
		}
	}
}
