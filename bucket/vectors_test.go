// SPDX-License-Identifier: Apache-2.0

package bucket_test

import (
	"math/big"
	"strings"
	"testing"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/bucket/testdata/vectors"
)

// TestVectors replays every published vector on this package and on the oracle.
// To add one, write the step with any answer: the failure says what both have.
func TestVectors(t *testing.T) {
	cases, err := vectors.Load()
	if err != nil {
		t.Fatal(err)
	}
	if len(cases) < 300 {
		t.Errorf("%d cases, want at least 300", len(cases))
	}
	names := map[string]bool{}
	for _, c := range cases {
		name := strings.TrimSuffix(c.File, ".json") + "/" + c.Name
		if names[name] || c.Name == "" || c.Comment == "" {
			t.Errorf("%q: a case needs a name of its own and a comment", name)
		}
		names[name] = true
		t.Run(name, func(t *testing.T) { replay(t, c) })
	}
}

func replay(t *testing.T, c vectors.Case) {
	if c.Refused {
		if l, _, err := c.Specs[0].Compile(); err == nil {
			t.Errorf("compiled to %v, want an error", l)
		}
		return
	}
	states, oracles := make([]bucket.State, len(c.Specs)), make([]oracle, len(c.Specs))
	for i, s := range c.Steps {
		switch s.Op {
		case vectors.Reset:
			for _, charge := range s.Charges {
				states[charge.Bucket], oracles[charge.Bucket] = bucket.State{}, oracle{}
			}
		case vectors.Refund:
			for _, charge := range s.Charges {
				b := charge.Bucket
				states[b] = charge.Limit.Refund(states[b], s.At, charge.Cost)
				oracles[b].refund(oracleCharged(t, charge), int64(s.At), int64(charge.Cost))
			}
		default:
			ask(t, i, s, states, oracles)
		}
		for _, charge := range s.Charges {
			checkRefill(t, charge)
		}
	}
}

// ask compares a take or a peek of the package and of the oracle with the step.
func ask(t *testing.T, i int, s vectors.Step, states []bucket.State, oracles []oracle) {
	t.Helper()
	picked, charges := make([]bucket.State, len(s.Charges)), make([]bucket.Charge, len(s.Charges))
	allowed, wait := true, s.MaxWait.Microseconds()
	if s.MaxWait == bucket.Forced {
		wait = forced
	}
	for j, c := range s.Charges {
		picked[j], charges[j] = states[c.Bucket], bucket.Charge{Limit: c.Limit, Cost: c.Cost}
		allowed = allowed && oracles[c.Bucket].ask(oracleCharged(t, c), int64(s.At), int64(c.Cost), wait, false).Allowed
	}
	if allowed != s.Allowed {
		t.Errorf("step %d: oracle says allowed %v, vector %v", i, allowed, s.Allowed)
	}
	var snaps []bucket.Snapshot
	var got bool
	if s.Op != vectors.Peek {
		snaps, got = bucket.TakeAll(nil, picked, charges, s.At, s.MaxWait)
	} else {
		got = true
		for j, c := range charges {
			snaps = append(snaps, c.Limit.Peek(picked[j], s.At, c.Cost, s.MaxWait))
			got = got && snaps[j].Allowed
		}
	}
	if got != s.Allowed {
		t.Errorf("step %d: allowed %v, want %v", i, got, s.Allowed)
	}
	for j, c := range s.Charges {
		states[c.Bucket] = picked[j]
		if got := answerOf(snaps[j]); got != answer(c.Want) {
			t.Errorf("step %d, bucket %d:\n got %+v\nwant %+v", i, c.Bucket, got, c.Want)
		}
		spend := s.Op != vectors.Peek && allowed
		o := oracles[c.Bucket].ask(oracleCharged(t, c), int64(s.At), int64(c.Cost), wait, spend)
		if o != answer(c.Want) {
			t.Errorf("step %d, bucket %d:\noracle %+v\n  want %+v", i, c.Bucket, o, c.Want)
		}
	}
}

// oracleCharged returns the oracle of a charge's limit.
func oracleCharged(t *testing.T, c vectors.Charge) *oracleLimit {
	t.Helper()
	o, err := oracleFor(c.Spec, c.Key)
	if err != nil {
		t.Fatal(err)
	}
	if c.Spec.Anchor != bucket.AnchorFirst && o.start != c.Offset {
		t.Errorf("%v for %q begins at %d, want %d", c.Limit, c.Key, o.start, c.Offset)
	}
	return o
}

// checkRefill checks the refill of a charge's limit against the rate asked for:
// equal to it or, where that does not fit, the best of all fractions below.
func checkRefill(t *testing.T, c vectors.Charge) {
	t.Helper()
	n, p := c.Limit.Refill()
	asked := big.NewRat(int64(c.Spec.Rate.Tokens), c.Spec.Rate.Per.Microseconds())
	used := big.NewRat(int64(n), p)
	if used.Cmp(asked) == 0 {
		return
	}
	bounded := c.Spec.Capacity
	if c.Spec.MaxReserved != nil {
		bounded += *c.Spec.MaxReserved
	}
	bounded += c.Spec.Queue
	maxP := (1<<53 - 1) / int64(bounded)
	if best := bruteForceBelow(asked, maxP); used.Cmp(best) != 0 {
		t.Errorf("rate %v with denominators up to %d: %v, want %v", c.Spec.Rate, maxP, used, best)
	}
}
