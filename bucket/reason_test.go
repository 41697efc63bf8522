// SPDX-License-Identifier: Apache-2.0

package bucket_test

import (
	"slices"
	"testing"
	"time"

	"github.com/metehq/mete/bucket"
)

func TestReason(t *testing.T) {
	ten := bucket.Rate{Tokens: 10 * bucket.Token, Per: time.Second}
	tests := map[string]bucket.Spec{
		"token_bucket_exceeded":   {Capacity: 10 * bucket.Token, Rate: ten},
		"fixed_window_exceeded":   {Algorithm: bucket.AlgorithmStepped, Capacity: 10 * bucket.Token, Rate: ten},
		"sliding_window_exceeded": {Algorithm: bucket.AlgorithmSlidingWindow, Rate: ten},
		"sliding_log_exceeded":    {Algorithm: bucket.AlgorithmSlidingLog, Rate: ten},
		"concurrency_exceeded":    {Algorithm: bucket.AlgorithmConcurrency, Rate: ten},
		"leaky_bucket_exceeded":   {Capacity: bucket.Token, Queue: bucket.Token, Rate: ten},
	}
	for want, spec := range tests {
		l, _, err := spec.Compile()
		if err != nil {
			t.Fatal(err)
		}
		if got := l.Reason(); got != want {
			t.Errorf("%+v: got %q, want %q", spec, got, want)
		}
		if !slices.Contains(bucket.Reasons(), want) {
			t.Errorf("Reasons() lacks %q", want)
		}
	}
	if got := len(bucket.Reasons()); got != len(tests) {
		t.Errorf("Reasons() has %d reasons, want the %d of the table", got, len(tests))
	}
}
