// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/testseed"
	"github.com/metehq/mete/policy"
)

// limitsOf compiles one rule with the given fields.
func limitsOf(t *testing.T, fields string) []policy.Limit {
	t.Helper()
	m, err := policy.Load([]byte(`{"name": "r", "limit_keys": [], `+fields+`}`), policy.Options{})
	if err != nil {
		t.Fatalf("%s: %v", fields, err)
	}
	return m.Rules()[0].Limits
}

func TestAlgorithms(t *testing.T) {
	const day = 24 * time.Hour
	every := func(tokens bucket.Tokens, per time.Duration) bucket.Rate {
		return bucket.Rate{Tokens: tokens * bucket.Token, Per: per}
	}
	none := bucket.Tokens(0)
	for _, tc := range []struct {
		algorithm, config string
		want              bucket.Spec
	}{
		{"token_bucket", `"rps": 10, "burst": 20`, bucket.Spec{Capacity: 20_000, Rate: every(10, time.Second)}},
		{"token_bucket", `"rps": 10, "burst": "300s"`, bucket.Spec{Capacity: 3_000_000, Rate: every(10, time.Second)}},
		{"token_bucket", `"rps": 10, "burst": 1, "refill": "continuous"`, bucket.Spec{Capacity: 1_000, Rate: every(10, time.Second)}}, // pacing
		{"token_bucket", `"rate": "1/30s", "burst": 1`, bucket.Spec{Capacity: 1_000, Rate: every(1, 30*time.Second)}},                 // cooldown
		{"token_bucket", `"rate": "5/10s", "burst": 20, "refill": "interval"`,
			bucket.Spec{Algorithm: bucket.AlgorithmStepped, Capacity: 20_000, Rate: every(5, 10*time.Second)}},
		{"token_bucket", `"rate": "5/10s", "burst": 20, "refill": "interval", "anchor": "first", "max_reserved": 0`,
			bucket.Spec{Algorithm: bucket.AlgorithmStepped, Capacity: 20_000, Rate: every(5, 10*time.Second), Anchor: bucket.AnchorFirst, MaxReserved: &none}},
		{"token_bucket", `"rate": "100/1d", "burst": 100, "refill": "interval", "start": "7h"`,
			bucket.Spec{Algorithm: bucket.AlgorithmStepped, Capacity: 100_000, Rate: every(100, day), Start: 7 * time.Hour}},
		{"fixed_window", `"tokens": 100, "window": "1m"`, bucket.Spec{Algorithm: bucket.AlgorithmStepped, Capacity: 100_000, Rate: every(100, time.Minute)}},
		{"fixed_window", `"tokens": 100, "window": "1w", "start": "4d", "anchor": "epoch", "capacity": 250`,
			bucket.Spec{Algorithm: bucket.AlgorithmStepped, Capacity: 250_000, Rate: every(100, 7*day), Start: 4 * day}},
		{"fixed_window", `"tokens": 100, "window": "1h", "anchor": "key"`,
			bucket.Spec{Algorithm: bucket.AlgorithmStepped, Capacity: 100_000, Rate: every(100, time.Hour), Anchor: bucket.AnchorKey}},
		{"sliding_window", `"tokens": 100, "window": "1m"`, bucket.Spec{Algorithm: bucket.AlgorithmSlidingWindow, Rate: every(100, time.Minute)}},
		{"sliding_log", `"tokens": 10000, "window": "1m"`, bucket.Spec{Algorithm: bucket.AlgorithmSlidingLog, Rate: every(10_000, time.Minute)}},
		{"leaky_bucket", `"rps": 10, "queue": 5`, bucket.Spec{Capacity: 1_000, Rate: every(10, time.Second), Queue: 5_000}},
		{"leaky_bucket", `"rps": 10, "queue": "2s", "capacity": 3`, bucket.Spec{Capacity: 3_000, Rate: every(10, time.Second), Queue: 20_000}},
		{"leaky_bucket", `"rps": 10, "queue": 0`, bucket.Spec{Capacity: 1_000, Rate: every(10, time.Second), MaxReserved: &none}},
	} {
		want, _, err := tc.want.Compile()
		if err != nil {
			t.Fatalf("%+v: %v", tc.want, err)
		}
		for _, form := range []string{
			`"algorithm": "` + tc.algorithm + `", "algorithm_config": {` + tc.config + `}`,
			`"limits": [{"algorithm": "` + tc.algorithm + `", ` + tc.config + `}]`,
			`"algorithm": "` + tc.algorithm + `", "limits": [{` + tc.config + `}]`,
		} {
			limits := limitsOf(t, form)
			if len(limits) != 1 || limits[0].Bucket != want || limits[0].Reason != tc.algorithm+"_exceeded" || !limits[0].FixedCost() || limits[0].Shards != 0 {
				t.Errorf("%s: got %+v,\nwant one of %v and %s_exceeded", form, limits, want, tc.algorithm)
			}
		}
	}
}

// A policy compiles to the limit that a program would create.
func TestAlgorithms_AreSpecs(t *testing.T) {
	r := rand.New(testseed.PCG(1, 2))
	for range 2000 {
		tokens := bucket.Tokens(1 + r.Int64N(9_999_000)) // of a log, too
		per := time.Duration(1+r.Int64N(1e9)) * time.Microsecond
		more := tokens + bucket.Tokens(r.Int64N(1e6))
		rate := bucket.Rate{Tokens: tokens, Per: per}
		rateText := tokens.String() + "/" + per.String()
		window := fmt.Sprintf(`"tokens": %v, "window": %q`, tokens, per)
		start := time.Duration(r.Int64N(int64(per/time.Microsecond))) * time.Microsecond
		spec, text := bucket.Spec{Rate: rate}, ""
		switch r.IntN(6) {
		case 0:
			text = fmt.Sprintf(`"token_bucket", "rate": %q, "burst": %v, "max_reserved": %v`, rateText, more, tokens)
			spec.Capacity, spec.MaxReserved = more, &tokens
		case 1:
			text = fmt.Sprintf(`"token_bucket", "rate": %q, "burst": %v, "refill": "interval", "anchor": "key"`, rateText, more)
			spec.Algorithm, spec.Capacity, spec.Anchor = bucket.AlgorithmStepped, more, bucket.AnchorKey
		case 2:
			text = fmt.Sprintf(`"fixed_window", %s, "start": %q, "capacity": %v`, window, start, more)
			spec.Algorithm, spec.Capacity, spec.Start = bucket.AlgorithmStepped, more, start
		case 3:
			text, spec.Algorithm = `"sliding_window", `+window, bucket.AlgorithmSlidingWindow
		case 4:
			text, spec.Algorithm = `"sliding_log", `+window, bucket.AlgorithmSlidingLog
		case 5:
			text = fmt.Sprintf(`"leaky_bucket", "rate": %q, "queue": %v, "capacity": %v`, rateText, tokens, more)
			spec.Capacity, spec.Queue = more, tokens
		}
		text = `"limits": [{"fixed_cost": 0.001, "algorithm": ` + text + `}]`
		want, approximation, err := spec.Compile()
		if err != nil { // a rate that nothing close enough to can represent
			_, err := policy.Load([]byte(`{"name": "r", "limit_keys": [], `+text+`}`), policy.Options{})
			if err == nil {
				t.Errorf("%s: compiled, but not %+v", text, spec)
			}
			continue
		}
		got := limitsOf(t, text)[0]
		if got.Bucket != want || (got.Approximation == nil) != (approximation == nil) {
			t.Errorf("%s: got %v, want %v", text, got.Bucket, want)
		}
	}
}

// A rule can have limits of all algorithms, and a denial names the algorithm.
func TestAlgorithms_Mixed(t *testing.T) {
	limits := limitsOf(t, `"limits": [
		{"rps": 10, "burst": 20},
		{"algorithm": "fixed_window", "tokens": 100, "window": "1d", "cost_source": "header:x-cost", "min_cost": 1, "max_cost": 5},
		{"algorithm": "sliding_window", "tokens": 100, "window": "1h"},
		{"algorithm": "sliding_log", "algorithm_config": {"tokens": 100, "window": "1m"}},
		{"name": "out", "algorithm": "leaky_bucket", "rps": 5, "queue": 5}]`)
	var got []string
	for i := range limits {
		got = append(got, fmt.Sprintf("%s %s %t", limits[i].Name, limits[i].Reason, limits[i].FixedCost()))
	}
	const want = "r/1 token_bucket_exceeded true, r/2 fixed_window_exceeded false, r/3 sliding_window_exceeded true, " +
		"r/4 sliding_log_exceeded true, r/out leaky_bucket_exceeded true"
	if text := strings.Join(got, ", "); text != want {
		t.Errorf("limits are\n%s, want\n%s", text, want)
	}
}

func TestShards(t *testing.T) {
	for _, tc := range []struct {
		config   string
		shards   int
		warnings int
	}{
		{`"rps": 1000, "burst": 2000`, 0, 0},
		{`"rps": 1000, "burst": 2000, "shards": 2`, 2, 0},
		{`"rps": 1000, "burst": 2000, "shards": 32`, policy.MaxShards, 0},
		{`"rps": 1000, "burst": "10s", "refill": "continuous", "shards": 7, "max_reserved": 100`, 7, 0}, // 10 000 thousandths are left over
		{`"rps": 10, "burst": 20, "shards": 5`, 5, 1},                                                   // each holds 4
	} {
		m, err := policy.Load([]byte(`{"name": "r", "limit_keys": [], "algorithm_config": {`+tc.config+`}}`), policy.Options{})
		if err != nil {
			t.Errorf("%s: %v", tc.config, err)
			continue
		}
		if got := m.Rules()[0].Limits[0].Shards; got != tc.shards || len(m.Warnings()) != tc.warnings {
			t.Errorf("%s: %d shards and warnings %q, want %d and %d of them", tc.config, got, m.Warnings(), tc.shards, tc.warnings)
		}
	}
}

// A limit of a policy and a limit that a program brings have the same reason.
func TestLimit_ReasonAgreesWithBucket(t *testing.T) {
	for _, config := range []string{
		`"algorithm": "token_bucket", "algorithm_config": {"rps": 10, "burst": 20}`,
		`"algorithm": "fixed_window", "algorithm_config": {"tokens": 100, "window": "1m"}`,
		`"algorithm": "sliding_window", "algorithm_config": {"tokens": 100, "window": "1m"}`,
		`"algorithm": "sliding_log", "algorithm_config": {"tokens": 100, "window": "1m"}`,
		`"algorithm": "leaky_bucket", "algorithm_config": {"rps": 10, "queue": 5}`,
	} {
		m, err := policy.Load([]byte("{"+config+"}"), policy.Options{})
		if err != nil {
			t.Fatal(err)
		}
		l := m.Rules()[0].Limits[0]
		if got := l.Bucket.Reason(); got != l.Reason {
			t.Errorf("%s: the bucket's reason is %q, want %q of the policy", config, got, l.Reason)
		}
	}
}
