// SPDX-License-Identifier: Apache-2.0

package ratelimitfields_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/ratelimitfields"
	"github.com/metehq/mete/policy"
)

// The fields of limits other than token buckets. Each bucket is charged with before at 0, and then one token at
// the given time.
func TestHeader_OfEachAlgorithm(t *testing.T) {
	const token = bucket.Token
	ten := bucket.Rate{Tokens: 10 * token, Per: time.Minute}
	window := bucket.Spec{Algorithm: bucket.AlgorithmStepped, Capacity: 10 * token, Rate: ten}
	rollover := bucket.Spec{Algorithm: bucket.AlgorithmStepped, Capacity: 25 * token, Rate: ten}
	slow := bucket.Spec{Algorithm: bucket.AlgorithmStepped, Capacity: token, Rate: bucket.Rate{Tokens: 400, Per: 10 * time.Second}}
	first := bucket.Spec{Algorithm: bucket.AlgorithmStepped, Capacity: 10 * token, Rate: ten, Anchor: bucket.AnchorFirst}
	sliding := bucket.Spec{Algorithm: bucket.AlgorithmSlidingWindow, Rate: ten}
	log := bucket.Spec{Algorithm: bucket.AlgorithmSlidingLog, Rate: ten}
	slots := bucket.Spec{Algorithm: bucket.AlgorithmConcurrency, Rate: bucket.Rate{Tokens: 3 * token, Per: 30 * time.Second}}
	leaky := bucket.Spec{Capacity: token, Rate: bucket.Rate{Tokens: token, Per: 2 * time.Second}, Queue: 4 * token}
	for _, tc := range []struct {
		name     string
		spec     bucket.Spec
		before   bucket.Tokens
		at       time.Duration
		cost     bucket.Tokens
		policy   string
		standing string
	}{
		{"window, until the next one", window, 3 * token, 15 * time.Second, token, `"l";q=10;w=60`, `"l";r=6;t=45`},
		{"window, nothing left", window, 9 * token, 59500 * time.Millisecond, token, `"l";q=10;w=60`, `"l";r=0;t=1`},
		{"window, denied", window, 10 * token, 20 * time.Second, token, `"l";q=10;w=60`, `"l";r=0;t=40`},
		{"window, untouched", window, 0, 15 * time.Second, 0, `"l";q=10;w=60`, `"l";r=10;t=60`},
		{"window that rolls over", rollover, 20 * token, 30 * time.Second, token, `"l";q=25;w=180`, `"l";r=4;t=30`},
		{"steps of less than a token", slow, 0, 5 * time.Second, token, `"l";q=1;w=30`, `"l";r=0;t=25`},
		{"from the first take on", first, 0, 15 * time.Second, token, `"l";q=10;w=60`, `"l";r=9;t=60`},
		{"sliding window, in the same window", sliding, 4 * token, 30 * time.Second, token, `"l";q=10;w=60`, `"l";r=5;t=43`}, // 5 fade to 4 in a fifth of the next, and a 4096th
		{"sliding window, in the next", sliding, 10 * token, 90 * time.Second, token, `"l";q=10;w=60`, `"l";r=4;t=7`},        // half of 10 counts, and a tenth of a window frees one: 6 s and a 4096th
		{"sliding log", log, 4 * token, 30 * time.Second, token, `"l";q=10;w=60`, `"l";r=5;t=60`},                            // more comes after 30 s, which is not known
		{"sliding log, denied", log, 10 * token, 30 * time.Second, token, `"l";q=10;w=60`, `"l";r=0;t=30`},                   // when it is
		{"slots, all free", slots, 0, 0, 0, `"l";q=3`, `"l";r=3`},                                                            // nothing comes back
		{"slots, one more", slots, token, 10 * time.Second, token, `"l";q=3`, `"l";r=1;t=30`},                                // by the state of package bucket, which has one end
		{"slots, denied", slots, 3 * token, 10 * time.Second, token, `"l";q=3`, `"l";r=0;t=20`},                              // at the latest
		{"leaky bucket, one that waits", leaky, token, 0, token, `"l";q=5;w=10`, `"l";r=3;t=6`},                              // three more can wait
		{"leaky bucket, the queue is full", leaky, 4 * token, time.Second, token, `"l";q=5;w=10`, `"l";r=0;t=1`},             // half a token is there
		{"leaky bucket, denied", leaky, 5 * token, 500 * time.Millisecond, token, `"l";q=5;w=10`, `"l";r=0;t=2`},             // after 1.5 s
		{"leaky bucket, more than it holds", leaky, 0, 500 * time.Millisecond, 6 * token, `"l";q=5;w=10`, `"l";r=0`},         // never
		{"leaky bucket, untouched", leaky, 0, time.Second, 0, `"l";q=5;w=10`, `"l";r=5;t=10`},                                // as many as can wait
	} {
		limit, _, err := tc.spec.Compile()
		if err != nil {
			t.Fatalf("%s: %v", tc.name, err)
		}
		var state bucket.State
		if tc.before > 0 {
			state, _ = limit.Take(state, 0, tc.before)
		}
		_, snap := limit.Take(state, bucket.Instant(0).Add(tc.at), tc.cost)
		d := decision(mete.Status{Rule: &policy.Rule{Name: "l"}, Limit: &policy.Limit{Name: "l", Bucket: limit}, Snapshot: snap})
		h := http.Header{}
		newWriter(t, ratelimitfields.Config{Dialects: []string{"draft-11"}, DisableJitter: true}).Header(h, d)
		if got, standing := h.Get("RateLimit-Policy"), h.Get("RateLimit"); got != tc.policy || standing != tc.standing {
			t.Errorf("%s: %s and %s, want %s and %s", tc.name, got, standing, tc.policy, tc.standing)
		}
	}
}
