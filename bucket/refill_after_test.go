// SPDX-License-Identifier: Apache-2.0

package bucket_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/testseed"
)

// A queue is served in order, as early as the bucket allows. Earliest predicts the end of its last request.
func TestSnapshot_Earliest(t *testing.T) {
	specs := []bucket.Spec{
		{Capacity: 5 * bucket.Token, Rate: bucket.Rate{Tokens: 7 * bucket.Token, Per: 3 * time.Second}},
		{Capacity: 5 * bucket.Token, Rate: bucket.Rate{Tokens: 3 * bucket.Token, Per: time.Second}, MaxReserved: new(bucket.Tokens)},
		{Capacity: bucket.Token, Rate: bucket.Rate{Tokens: bucket.Token, Per: time.Second}, Queue: 4 * bucket.Token},
		{Algorithm: bucket.AlgorithmStepped, Capacity: 5 * bucket.Token, Rate: bucket.Rate{Tokens: 3 * bucket.Token, Per: time.Second}},
		{Algorithm: bucket.AlgorithmStepped, Capacity: 5 * bucket.Token, Rate: bucket.Rate{Tokens: 3 * bucket.Token, Per: time.Second}, Anchor: bucket.AnchorFirst},
		{Algorithm: bucket.AlgorithmSlidingWindow, Rate: bucket.Rate{Tokens: 5 * bucket.Token, Per: time.Second}},
		{Algorithm: bucket.AlgorithmSlidingLog, Rate: bucket.Rate{Tokens: 5 * bucket.Token, Per: time.Second}},
	}
	for _, spec := range specs {
		l, _, err := spec.Compile()
		if err != nil {
			t.Fatal(err)
		}
		exact := l.Algorithm() <= bucket.AlgorithmStepped
		for seed := range uint64(200) {
			r := rand.New(testseed.PCG(seed, 11))
			var s bucket.State
			now := bucket.Instant(1_700_000_000_000_000)
			for range 12 {
				s, _ = l.Take(s, now, bucket.Tokens(r.Int64N(3000)))
				now += bucket.Instant(r.Int64N(400_000))
			}
			begin, snap := now, l.Peek(s, now, 0, 0)
			var asked bucket.Tokens
			for range 1 + r.IntN(20) {
				cost := bucket.Tokens(1 + r.Int64N(int64(bucket.Token)))
				asked += cost
				after, verdict := l.Take(s, now, cost)
				for !verdict.Allowed {
					now = now.Add(verdict.RetryAfter)
					after, verdict = l.Take(s, now, cost)
				}
				s, now = after, now.Add(verdict.Wait()) // of a queue
			}
			got, want := snap.RefillAfter(asked), time.Duration(now-begin)*time.Microsecond
			if got > want || exact && got != want {
				t.Errorf("%v, seed %d: the earliest of %v is after %v, want %v", l, seed, asked, got, want)
			}
		}
	}
}

func TestSnapshot_EarliestAtTheEdges(t *testing.T) {
	l, err := bucket.NewLimit(bucket.Token, bucket.Rate{Tokens: 1, Per: 100 * time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	full := l.Peek(bucket.State{}, 0, 0, 0)
	for _, cost := range []bucket.Tokens{-1, 0, bucket.Token} {
		if got := full.RefillAfter(cost); got != 0 {
			t.Errorf("the earliest of %v is after %v, want 0", cost, got)
		}
	}
	if got := full.RefillAfter(1<<63 - 1); got < 100*365*24*time.Hour {
		t.Errorf("the earliest of the largest number is after %v", got)
	}
	if got := (bucket.Snapshot{}).RefillAfter(1); got != bucket.Never {
		t.Errorf("the earliest of a limit that holds nothing is after %v, want never", got)
	}
}
