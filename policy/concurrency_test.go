// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"testing"
	"time"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/policy"
)

const fiveSlots = `"algorithm": "concurrency", "max": 5, "lease": "30s"`

func TestConcurrency(t *testing.T) {
	want, _, err := bucket.Spec{Algorithm: bucket.AlgorithmConcurrency, Rate: bucket.Rate{Tokens: 5 * bucket.Token, Per: 30 * time.Second}}.Compile()
	if err != nil {
		t.Fatal(err)
	}
	for _, form := range []string{
		fiveSlots,
		`"algorithm": "concurrency", "algorithm_config": {"max": 5, "lease": "30s"}`,
		`"limits": [{` + fiveSlots + `}]`,
	} {
		l := limitsOf(t, form)[0]
		if l.Bucket != want || l.Reason != "concurrency_exceeded" || !l.HoldsSlot() || !l.FixedCost() || l.AwaitsResponse() || l.Penalty != nil {
			t.Errorf("%s: got %+v, want %v", form, l, want)
		}
	}
}

// A request holds one slot, whatever its cost is under the other limits.
func TestConcurrency_OneSlot(t *testing.T) {
	m := load(t, `{"name": "r", "limit_keys": [], "penalty": "1m", "charge_on": {"status": [401]}, "limits": [{`+fiveSlots+`}, {"rate": "100/1s", "cost_source": "header:x-cost"}]}`)
	if !m.HoldsSlots() || !m.Rules()[0].HoldsSlots() {
		t.Error("the policy holds no slots")
	}
	for _, given := range []bucket.Tokens{0, 7 * bucket.Token} {
		matches, _ := m.Match(nil, policy.Map{"header:x-cost": "7"}, given, 0)
		if len(matches) != 2 || matches[0].Cost != bucket.Token || matches[1].Cost != 7*bucket.Token {
			t.Errorf("with a cost of %v from the caller: got %+v, want one slot and 7 tokens", given, matches)
		}
	}
	slots, rate := &m.Rules()[0].Limits[0], &m.Rules()[0].Limits[1]
	if slots.Penalty != nil || slots.AwaitsResponse() || rate.Penalty == nil || !rate.AwaitsResponse() {
		t.Error("penalty and charge_on of the rule must apply to the rate alone")
	}
}

// Rules with one bucket share its slots.
func TestConcurrency_SharedBucket(t *testing.T) {
	m := load(t, `{"name": "a", "match": {"path": "/a"}, "limit_keys": [], "bucket": "b", `+fiveSlots+`}, {"name": "c", "bucket": "b", "match": {"path": "/c"}}`)
	first, _ := m.Match(nil, policy.Map{"path": "/a"}, 0, 0)
	second, _ := m.Match(nil, policy.Map{"path": "/c"}, 0, 0)
	if len(first) != 1 || len(second) != 1 || first[0].Key != second[0].Key || second[0].Cost != bucket.Token {
		t.Errorf("got %+v and %+v, want one slot of the same key", first, second)
	}
}

// An override changes max or lease.
func TestConcurrency_Override(t *testing.T) {
	m := loadWhole(t, `{"rules": [{"name": "r", "limit_keys": ["header:x-user"], `+fiveSlots+`}], "overrides": [{"id": "o", "action": "limit", "rules": ["r"],
		"match": {"header:x-user": "ann"}, "algorithm": "concurrency", "max": 9, "lease": "1m", "reason": "r", "author": "a", "expires_at": "2099-01-01T00:00:00Z"}]}`)
	matches, _ := m.Match(nil, policy.Map{"header:x-user": "ann"}, 0, 0)
	if got := matches[0].Limit.Bucket.Capacity(); got != 9*bucket.Token || matches[0].Cost != bucket.Token {
		t.Errorf("got %v slots and a cost of %v, want 9 and 1", got, matches[0].Cost)
	}
}
