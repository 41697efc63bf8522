// SPDX-License-Identifier: Apache-2.0

package mete_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/testseed"
	"github.com/metehq/mete/store"
	"github.com/metehq/mete/storetest"
)

// A recorder is a store that records the charges of each take.
type recorder struct {
	mete.Store
	takes [][]store.Charge
	modes []mete.Mode
	undos [][]string // the keys of each refund
}

func (r *recorder) Take(ctx context.Context, dst []bucket.Snapshot, charges []store.Charge, mode mete.Mode) ([]bucket.Snapshot, bool, error) {
	r.takes, r.modes = append(r.takes, slices.Clone(charges)), append(r.modes, mode)
	return r.Store.Take(ctx, dst, charges, mode)
}

func (r *recorder) Refund(ctx context.Context, refunds []mete.Refund, id string) error {
	keys := make([]string, len(refunds))
	for i := range refunds {
		keys[i] = refunds[i].Key
	}
	r.undos = append(r.undos, keys)
	return r.Store.Refund(ctx, refunds, id)
}

func newRecorder(t *testing.T, rules string) (rig, *recorder) {
	t.Helper()
	clock := storetest.NewClock()
	s := &recorder{Store: storetest.NewModel(clock.Now)}
	l, err := mete.New(s, load(t, `{"rules": [`+rules+`]}`), mete.Config{})
	if err != nil {
		t.Fatal(err)
	}
	return rig{t, l, clock}, s
}

// rulesOf returns rules that all apply, with their names and extra fields. A text that ends with "in shards"
// means four shards.
func rulesOf(fields ...string) string {
	all := make([]string, len(fields))
	for i, f := range fields {
		name, rest, _ := strings.Cut(f, " ")
		rest, sharded := strings.CutSuffix(rest, "in shards")
		more := ""
		if sharded {
			more = `, "shards": 4`
		}
		all[i] = fmt.Sprintf(`{"name": %[1]q, "group": %[1]q, "limit_keys": [], %s "algorithm_config": {"rate": "1/1h", "burst": 100%s}}`, name, rest, more)
	}
	return strings.Join(all, ",")
}

// G2: stores lock buckets in the order of their keys, so each call has its charges in that order and each key
// once. Statuses are in the order of the policy, each with its bucket's snapshot.
func TestTake_ChargesAreInTheOrderOfTheirKeys(t *testing.T) {
	r, s := newRecorder(t, rulesOf("m", "c", `x "mode": "shadow",`, "z", `a "mode": "shadow",`))
	random := rand.New(testseed.PCG(20261123, 2))
	names, l := strings.Split("abcdefghijklmnopqrstuvwxyz", ""), limit(t, 100, "1/1h")
	for range 200 {
		req := mete.Request{Cost: 2}
		costs := map[string]bucket.Tokens{"m:": 2 * whole, "c:": 2 * whole, "z:": 2 * whole}
		for _, i := range random.Perm(len(names))[:random.IntN(6)] {
			cost := bucket.Tokens(random.IntN(3)) * whole
			req.Charges = append(req.Charges, mete.Charge{Key: "own " + names[i], Limit: l, Cost: mete.TokensOf(cost)})
			costs["own "+names[i]] = cost
		}
		d := r.do("peek", func() (mete.Decision, error) { return r.Peek(t.Context(), req) })
		order := []string{"m:", "c:", "z:"}
		for _, c := range req.Charges {
			order = append(order, c.Key)
		}
		for i := range d.Limits() {
			if st := &d.Limits()[i]; st.Key != order[i] || st.Cost != costs[st.Key] {
				t.Fatalf("status %d is of %q with a cost of %v; want %q with %v", i, st.Key, st.Cost, order[i], costs[order[i]])
			}
		}
		if err := r.Refund(t.Context(), req); err != nil {
			t.Fatal(err)
		}
	}
	calls := s.undos
	for _, charges := range s.takes {
		keys := make([]string, len(charges))
		for i := range charges {
			keys[i] = charges[i].Key
		}
		calls = append(calls, keys)
	}
	for _, keys := range calls {
		if !slices.IsSorted(keys) || len(slices.Compact(slices.Clone(keys))) != len(keys) {
			t.Errorf("a call with the keys %q: want each once, in their order", keys)
		}
	}
}

// The shortest deadline applies, regardless of its rule's position.
func TestTake_WithinTheShortestDeadline(t *testing.T) {
	r, s := newRecorder(t, rulesOf(`a "deadline": "2s",`, `b "deadline": "20ms",`, `c "deadline": "1s",`,
		`d "mode": "shadow", "deadline": "10ms",`, `e "mode": "shadow", "deadline": "3s",`))
	r.take(nil)
	var got []time.Duration
	for _, m := range s.modes {
		got = append(got, m.Within)
	}
	if want := []time.Duration{20 * time.Millisecond, 10 * time.Millisecond, 3 * time.Second}; !slices.Equal(got, want) {
		t.Errorf("the store has %v, want %v: a shadow rule has its own", got, want)
	}
}

// G1: a shadow rule with shards takes from its shards, as it will when enforced.
func TestTake_ShadowWithShards(t *testing.T) {
	for _, rules := range []string{
		rulesOf("all", `trial "mode": "shadow",in shards`),
		rulesOf("all in shards", `trial "mode": "shadow",in shards`),
		rulesOf(`trial "mode": "shadow",in shards`, `other "mode": "shadow",`),
	} {
		r, s := newRecorder(t, rules)
		r.take(nil)
		spent := 0
		for _, charges := range s.takes {
			for _, c := range charges {
				if c.Key == "trial:" {
					t.Errorf("%s: a take of the key %q: want those of its shards", rules, c.Key)
				}
				if strings.HasPrefix(c.Key, "trial:") && c.Cost > 0 {
					spent++
				}
			}
		}
		if spent == 0 {
			t.Errorf("%s: no shard was charged", rules)
		}
	}
}

// One key must have the same number of shards in all charges and rules.
func TestCharges_OneKeyWithTwoNumbersOfShards(t *testing.T) {
	r := newRig(t, `{"name": "all", "limit_keys": [], "algorithm_config": {"rate": "1/1h", "burst": 100, "shards": 4}}`)
	l := limit(t, 100, "1/1h")
	for name, charges := range map[string][]mete.Charge{
		"two charges":          {{Key: "k", Limit: l, Cost: 1, Shards: 2}, {Key: "k", Limit: l, Cost: 1, Shards: 4}},
		"one without":          {{Key: "k", Limit: l, Cost: 1, Shards: 2}, {Key: "k", Limit: l, Cost: 1}},
		"another than a rule":  {{Key: "all:", Limit: l, Cost: 1, Shards: 2}},
		"none, but the rule's": {{Key: "all:", Limit: l, Cost: 1}},
	} {
		if _, err := r.Take(t.Context(), mete.Request{Charges: charges}); !errors.Is(err, mete.ErrRequest) {
			t.Errorf("%s: error %v, want ErrRequest", name, err)
		}
	}
	if d := r.do("take", func() (mete.Decision, error) {
		return r.Take(t.Context(), mete.Request{Cost: 1, Charges: []mete.Charge{{Key: "all:", Limit: l, Cost: 1, Shards: 4}}})
	}); !d.Allowed || len(d.Limits()) != 1 || d.Limits()[0].Cost != 2*whole {
		t.Errorf("the same number of shards: %+v, want one claim of 2 tokens", d)
	}
}

// The store's ID includes the keys, because a store may remember takes only by ID.
func TestID_TellsKeysApart(t *testing.T) {
	r, s := newRecorder(t, rulesOf("all"))
	l := limit(t, 10, "1/1h")
	seen := map[string]string{}
	for _, keys := range [][]string{nil, {"a"}, {"b"}, {"a", "b"}, {"a 1000", "b"}, {"ab"}, {`a"b`}, {"a", "c"}} {
		req := mete.Request{ID: "same"}
		for _, key := range keys {
			req.Charges = append(req.Charges, mete.Charge{Key: key, Limit: l, Cost: 1})
		}
		r.do("take", func() (mete.Decision, error) { return r.Take(t.Context(), req) })
		id, asked := s.modes[len(s.modes)-1].ID, ""
		for _, c := range s.takes[len(s.takes)-1] {
			asked += c.Key + "\n"
		}
		if other, ok := seen[id]; ok {
			t.Errorf("the keys %q and %q have one ID", other, asked)
		}
		seen[id] = asked
	}
}

// The store gets every field of a rule and of a charge.
func TestTake_ChargeIsWhole(t *testing.T) {
	r, s := newRecorder(t, `{"name": "all", "limit_keys": [], "algorithm_config": {"rate": "1/1h", "burst": 100, "leased": true}}`)
	rule, l := r.Policy().Rules()[0].Limits[0].Bucket, limit(t, 10, "1/1h")
	own := []mete.Charge{{Key: "a", Limit: l, Cost: 1, Fixed: true}, {Key: "b", Limit: l, Cost: 2, Leased: true}}
	slots, _, err := bucket.Spec{Algorithm: bucket.AlgorithmConcurrency, Rate: bucket.Rate{Tokens: bucket.Token, Per: time.Minute}}.Compile()
	if err != nil {
		t.Fatal(err)
	}
	// The charges of the next request may use this memory again.
	r.do("take a slot", func() (mete.Decision, error) {
		return r.Take(t.Context(), mete.Request{Charges: []mete.Charge{{Key: "a", Limit: slots, Cost: 1}}})
	})
	s.takes = nil
	r.do("take", func() (mete.Decision, error) { return r.Take(t.Context(), mete.Request{Cost: 3, Charges: own}) })
	want := []store.Charge{{Key: "a", Limit: l, Cost: whole, Fixed: true},
		{Key: "all:", Limit: rule, Cost: 3 * whole, Leased: true}, {Key: "b", Limit: l, Cost: 2 * whole, Leased: true}}
	if got := s.takes[0]; !slices.Equal(got, want) {
		t.Errorf("the store is asked for %+v, want %+v", got, want)
	}
}
