// SPDX-License-Identifier: Apache-2.0

package bucket_test

import (
	"testing"
	"time"

	"github.com/metehq/mete/bucket"
)

// A fast limit of errors gets its tokens back from successes. 1000 requests per second last 50 ms each, and the limit
// allows 100 errors per second. Without a history each cancellation returns nothing, because 5 tokens refill within 50 ms.
func TestAwait_FastLimit(t *testing.T) {
	limit, _, err := bucket.Spec{Capacity: 100 * bucket.Token, Rate: bucket.Rate{Tokens: 100 * bucket.Token, Per: time.Second}}.Compile()
	if err != nil {
		t.Fatal(err)
	}
	const lasts = 50 * time.Millisecond
	run := func(await bool) (denied int) {
		type request struct {
			end   bucket.Instant
			taken bucket.Taken
		}
		var s bucket.State
		var open []request
		for now := bucket.Instant(0); now < bucket.Instant(10*time.Second.Microseconds()); now = now.Add(time.Millisecond) {
			for len(open) > 0 && open[0].end <= now {
				s = limit.Cancel(s, open[0].end, bucket.Token, open[0].taken)
				open = open[1:]
			}
			after, snap := limit.Take(s, now, bucket.Token)
			if s = after; !snap.Allowed {
				denied++
				continue
			}
			if await {
				s = bucket.Row{{Limit: limit, State: s}}.WithAwait(&limit, now, snap.Taken(), 4*lasts)[0].State
			}
			open = append(open, request{now.Add(lasts), snap.Taken()})
		}
		return denied
	}
	if denied := run(true); denied > 0 {
		t.Errorf("%d of 10,000 successful requests were denied, want none", denied)
	}
	if denied := run(false); denied == 0 {
		t.Error("without a history none was denied: the test means nothing")
	}
}

// The length of the epochs follows the last await, unless a hold is open.
func TestAwait_EpochsFitTheLastAwait(t *testing.T) {
	l, _, err := bucket.Spec{Capacity: 1000 * bucket.Token, Rate: bucket.Rate{Tokens: bucket.Token, Per: time.Hour}}.Compile()
	if err != nil {
		t.Fatal(err)
	}
	var s bucket.State
	take := func(at time.Duration) bucket.Taken {
		after, snap := l.Take(s, bucket.Instant(at.Microseconds()), bucket.Token)
		s = after
		return snap.Taken()
	}
	want := func(longest time.Duration, epochs int) {
		t.Helper()
		if h := s.History; time.Duration(h.Longest)*time.Microsecond != longest || len(h.Epochs) != epochs {
			t.Errorf("the longest is %d µs, with %d epochs; want %v and %d", h.Longest, len(h.Epochs), longest, epochs)
		}
	}
	if s = await(l, s, take(0), 7*time.Second); s.History != nil {
		t.Error("the first take from a full bucket has a history")
	}
	s = await(l, s, take(0), 7*time.Second)
	s = await(l, s, take(500*time.Millisecond), 7*time.Second) // the first epoch lasts a second
	want(7*time.Second, 1)
	s = await(l, s, take(600*time.Millisecond), 700*time.Millisecond)
	want(700*time.Millisecond, 2)
	held := take(800 * time.Millisecond)
	s = hold(l, s, held, 70*time.Second)
	want(70*time.Second, 2) // a hold makes the epochs longer
	s = await(l, s, take(900*time.Millisecond), 700*time.Millisecond)
	want(70*time.Second, 2)
	s = bucket.Row{{Limit: l, State: s}}.WithoutHold(&l, 900_000, held)[0].State
	s = await(l, s, take(950*time.Millisecond), 700*time.Millisecond)
	want(700*time.Millisecond, 3)
	s = await(l, s, take(3*time.Second), 700*time.Millisecond)
	want(700*time.Millisecond, 2) // the others ended too long ago
	if end := (bucket.Row{{Limit: l, State: s}}).HeldUntil(); end != 70_800_000 {
		t.Errorf("the history ends at %d, want the expiry of the hold", end)
	}
}
