// SPDX-License-Identifier: Apache-2.0

package faulttest

import (
	"math/rand/v2"
	"testing"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/testseed"
	"github.com/metehq/mete/policy"
)

const streamsPolicy = `{"rules": [
	{"name": "day", "limit_keys": [], "deadline": "10s", "rate": "1/1h", "burst": 9000, "cost_source": "ai:tokens"},
	{"name": "hour", "group": "b", "limit_keys": [], "deadline": "10s", "rate": "1/1m", "burst": 9000, "cost_source": "ai:tokens", "weights": {"input": 1, "output": 2}}]}`

// ChargeStreamsThroughFaults charges streams of a language model in steps, while disturb loses the answers to steps and to
// settlements. Each limit is charged exactly the usage of all streams. disturb returns a function that ends the disturbance. The
// clock of the store must stand still, so that nothing refills.
func ChargeStreamsThroughFaults(t *testing.T, s mete.Store, now func() bucket.Instant, disturb func() (end func())) {
	t.Helper()
	rules, err := policy.Load([]byte(streamsPolicy), policy.Options{})
	if err != nil {
		t.Fatal(err)
	}
	l, err := mete.New(s, rules, mete.Config{Now: now})
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(testseed.PCG(1, 32))
	var sum, lost int64
	attrs := mete.Attrs{"ai:prompt_tokens": "10", "ai:max_tokens": "20"}
	for range 12 {
		reserved, err := l.Reserve(t.Context(), mete.Request{Attributes: attrs})
		if err != nil || !reserved.Allowed || reserved.Degraded {
			t.Fatalf("reserve: %+v, error %v", reserved, err)
		}
		use := policy.Response{Status: 200, Usage: &policy.TokenUsage{Input: 10, Output: 20}}
		for range 1 + r.IntN(4) {
			use.Usage.Output += 1 + r.Int64N(50)
			end := func() {}
			if r.IntN(2) == 0 {
				end = disturb()
			}
			if _, err := reserved.Extend(t.Context(), use, r.IntN(2) == 0); err != nil {
				lost++
			}
			end()
		}
		use.Usage.Output += r.Int64N(10) - 5 // less than the last step, or more
		if use.Ended = true; use.Usage.Output > 30 && r.IntN(2) == 0 {
			// A lost answer to a refund would keep the charge. An excess can be repeated.
			use.Usage.Output += 100
			end := disturb()
			if err := reserved.Finish(t.Context(), use); err != nil {
				lost++
			}
			end()
		}
		for range 10 {
			if err = reserved.Finish(t.Context(), use); err == nil {
				break
			}
		}
		if err != nil {
			t.Fatalf("finish: %v", err)
		}
		sum += use.Usage.Output
	}
	if lost == 0 {
		t.Error("no answer was lost: the run means nothing")
	}
	t.Logf("%d answers were lost", lost)
	d, err := l.Peek(t.Context(), mete.Request{Attributes: mete.Attrs{"ai:prompt_tokens": "0", "ai:max_tokens": "0"}})
	if err != nil {
		t.Fatal(err)
	}
	for i, weight := range []int64{1, 2} {
		if got, want := d.Limits()[i].Missing(), bucket.Tokens(12*10+weight*sum)*bucket.Token; got != want {
			t.Errorf("limit %d: %v tokens are missing, want %v", i, got, want)
		}
	}
}
