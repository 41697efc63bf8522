// SPDX-License-Identifier: Apache-2.0

package bucket_test

import (
	"testing"
	"time"

	"github.com/metehq/mete/bucket"
)

func TestRoom(t *testing.T) {
	const token = bucket.Token
	tenIn := func(per time.Duration) bucket.Rate { return bucket.Rate{Tokens: 10 * token, Per: per} }
	for _, tc := range []struct {
		name  string
		spec  bucket.Spec
		spend bucket.Tokens
		at    time.Duration // after the spending
		room  bucket.Tokens
		more  bucket.Tokens
		after time.Duration // until there is room for more
	}{
		{"continuous", bucket.Spec{Capacity: 20 * token, Rate: tenIn(time.Second)}, 20 * token, 150 * time.Millisecond, 1500, 2 * token, 50 * time.Millisecond},
		{"above the capacity", bucket.Spec{Capacity: 20 * token, Rate: tenIn(time.Second)}, 20 * token, 0, 0, 20_001, bucket.Never},
		{"queue", bucket.Spec{Capacity: token, Rate: tenIn(time.Second), Queue: 4 * token}, 2500, 0, 2500, 3 * token, 50 * time.Millisecond},
		{"full queue", bucket.Spec{Capacity: token, Rate: tenIn(time.Second), Queue: 4 * token}, 5 * token, 0, 0, token, 100 * time.Millisecond},
		{"window", bucket.Spec{Algorithm: bucket.AlgorithmStepped, Capacity: 10 * token, Rate: tenIn(time.Minute)}, 4 * token, 15 * time.Second, 6 * token, 7 * token, 45 * time.Second},
		{"two steps", bucket.Spec{Algorithm: bucket.AlgorithmStepped, Capacity: 30 * token, Rate: tenIn(time.Minute)}, 30 * token, time.Second, 0, 20 * token, 119 * time.Second},
		{"sliding window", bucket.Spec{Algorithm: bucket.AlgorithmSlidingWindow, Rate: tenIn(4096 * time.Microsecond)}, 10 * token, 0, 0, token, (4096 + 410) * time.Microsecond},
		{"sliding log", bucket.Spec{Algorithm: bucket.AlgorithmSlidingLog, Rate: tenIn(time.Minute)}, 9 * token, 15 * time.Second, token, 2 * token, 45 * time.Second},
		{"enough in a log", bucket.Spec{Algorithm: bucket.AlgorithmSlidingLog, Rate: tenIn(time.Minute)}, 8 * token, 0, 2 * token, 2 * token, 0},
	} {
		l, _, err := tc.spec.Compile()
		if err != nil {
			t.Fatalf("%s: %v", tc.name, err)
		}
		state, taken := l.Take(bucket.State{}, 0, tc.spend)
		if !taken.Allowed {
			t.Fatalf("%s: %v were denied", tc.name, tc.spend)
		}
		snap := l.Peek(state, bucket.Instant(0).Add(tc.at), 0, 0)
		if room, after := snap.Room(), snap.RoomAfter(tc.more); room != tc.room || after != tc.after {
			t.Errorf("%s: room for %v, and for %v after %v, want %v and %v", tc.name, room, tc.more, after, tc.room, tc.after)
		}
	}
}

// After RoomAfter, and not before, a take is admitted.
func TestRoomAfter_IsRetryAfter(t *testing.T) {
	rate := bucket.Rate{Tokens: 7 * bucket.Token, Per: 3 * time.Second}
	for _, spec := range []bucket.Spec{
		{Capacity: 7 * bucket.Token, Rate: rate},
		{Capacity: bucket.Token, Rate: rate, Queue: 6 * bucket.Token},
		{Algorithm: bucket.AlgorithmStepped, Capacity: 7 * bucket.Token, Rate: rate},
		{Algorithm: bucket.AlgorithmStepped, Capacity: 7 * bucket.Token, Rate: rate, Anchor: bucket.AnchorFirst},
		{Algorithm: bucket.AlgorithmSlidingWindow, Rate: rate},
	} {
		l, _, err := spec.Compile()
		if err != nil {
			t.Fatal(err)
		}
		var state bucket.State
		for now := bucket.Instant(1e9); now < 1e9+3e7; now += 123_457 {
			snap := bucket.Snapshot{}
			state, snap = l.Take(state, now, bucket.Token)
			for cost := bucket.Token; cost <= 7*bucket.Token; cost += 500 {
				if got, want := snap.RoomAfter(cost), l.Peek(state, now, cost, 0).RetryAfter; got != want {
					t.Fatalf("%v, at %v: room for %v after %v, but a take is told %v", l, now, cost, got, want)
				}
				if snap.Room() >= cost != (snap.RoomAfter(cost) == 0) {
					t.Fatalf("%v, at %v: room for %v, and for %v after %v", l, now, snap.Room(), cost, snap.RoomAfter(cost))
				}
			}
		}
	}
}
