// SPDX-License-Identifier: Apache-2.0

package mete_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/store"
	"github.com/metehq/mete/storetest"
)

// limit returns a limit of capacity whole tokens.
func limit(tb testing.TB, capacity int64, rate string) bucket.Limit {
	tb.Helper()
	r, err := bucket.ParseRate(rate)
	if err != nil {
		tb.Fatal(err)
	}
	l, err := bucket.NewLimit(bucket.Tokens(capacity)*bucket.Token, r)
	if err != nil {
		tb.Fatal(err)
	}
	return l
}

func compile(tb testing.TB, spec bucket.Spec) bucket.Limit {
	tb.Helper()
	l, _, err := spec.Compile()
	if err != nil {
		tb.Fatal(err)
	}
	return l
}

// newBare returns a limiter without a policy.
func newBare(t *testing.T, config mete.Config) rig {
	t.Helper()
	clock := storetest.NewClock()
	l, err := mete.New(storetest.NewModel(clock.Now), nil, config)
	if err != nil {
		t.Fatal(err)
	}
	return rig{t, l, clock}
}

func (r rig) do(what string, f func() (mete.Decision, error)) mete.Decision {
	r.Helper()
	d, err := f()
	if err != nil {
		r.Fatalf("%s: %v", what, err)
	}
	return d
}

// left asserts the content of a bucket.
func (r rig) left(key string, l bucket.Limit, want string) {
	r.Helper()
	d, err := r.Peek(r.Context(), mete.Request{Charges: []mete.Charge{{Key: key, Limit: l}}})
	if err != nil {
		r.Fatal(err)
	}
	if got := d.Limits()[len(d.Limits())-1].Remaining().String(); got != want {
		r.Errorf("bucket %q holds %s tokens, want %s", key, got, want)
	}
}

func TestCharges_SeveralKeysInOneStep(t *testing.T) {
	r, user, all := newBare(t, mete.Config{}), limit(t, 5, "1/1s"), limit(t, 3, "1/1m")
	req := mete.Request{Charges: []mete.Charge{
		{Key: "user:alice", Limit: user, Cost: 1},
		{Key: "all", Limit: all, Cost: 1},
	}}
	for range 3 {
		if d := r.do("take", func() (mete.Decision, error) { return r.Take(t.Context(), req) }); !d.Allowed || d.Taken != bucket.Token {
			t.Fatalf("%+v, want allowed", d)
		}
	}
	d := r.do("take", func() (mete.Decision, error) { return r.Take(t.Context(), req) })
	if d.Allowed || d.RetryAfter != time.Minute || d.Reason != "token_bucket_exceeded" || d.Rule != "" || d.Taken != 0 {
		t.Errorf("%+v, want denied for a minute by a rule without a name", d)
	}
	if len(d.Limits()) != 2 || !d.Limits()[0].Allowed || d.Limits()[1].Allowed || d.Limits()[0].Rule == nil || d.Limits()[0].Limit == nil {
		t.Errorf("limits %+v: want two in the order of the request, with a rule and a limit", d.Limits())
	}
	r.left("user:alice", user, "2")
	if err := r.Refund(t.Context(), req); err != nil {
		t.Fatal(err)
	}
	r.left("all", all, "1")
	if err := r.Reset(t.Context(), req); err != nil {
		t.Fatal(err)
	}
	r.left("user:alice", user, "5")
	r.left("all", all, "3")
}

func TestCharges_ReasonsNameTheAlgorithm(t *testing.T) {
	rate := bucket.Rate{Tokens: bucket.Token, Per: time.Second}
	for reason, spec := range map[string]bucket.Spec{
		"token_bucket_exceeded":   {Algorithm: bucket.AlgorithmStepped, Capacity: 2 * bucket.Token, Rate: rate},
		"fixed_window_exceeded":   {Algorithm: bucket.AlgorithmStepped, Capacity: bucket.Token, Rate: rate},
		"sliding_window_exceeded": {Algorithm: bucket.AlgorithmSlidingWindow, Rate: rate},
		"sliding_log_exceeded":    {Algorithm: bucket.AlgorithmSlidingLog, Rate: rate},
		"leaky_bucket_exceeded":   {Capacity: bucket.Token, Rate: rate, Queue: bucket.Token},
	} {
		r := newBare(t, mete.Config{})
		d := r.do("take", func() (mete.Decision, error) {
			return r.Take(t.Context(), mete.Request{Charges: []mete.Charge{{Key: "k", Limit: compile(t, spec), Cost: 3}}})
		})
		if d.Allowed || d.Reason != reason {
			t.Errorf("%v: %+v, want denied for %s", spec.Algorithm, d, reason)
		}
	}
}

// Charges are added to the policy's claims, even for the same key.
func TestCharges_JoinThePolicy(t *testing.T) {
	r := newRig(t, `{"name": "all", "limit_keys": [], "algorithm_config": {"rps": 1, "burst": 10}}`)
	other, ten := limit(t, 7, "1/1s"), limit(t, 10, "1/1s")
	const key = "all:"
	d := r.do("take", func() (mete.Decision, error) {
		return r.Take(t.Context(), mete.Request{Cost: 2, Charges: []mete.Charge{
			{Key: "b", Limit: other, Cost: 1},
			{Key: "a", Limit: other, Cost: 1},
			{Key: "b", Limit: other, Cost: 3},
			{Key: key, Limit: ten, Cost: 1},
		}})
	})
	var got []string
	for _, s := range d.Limits() {
		got = append(got, fmt.Sprintf("%s %v left %v", s.Rule.Name, s.Cost, s.Remaining()))
	}
	if got, want := strings.Join(got, ", "), "all 3 left 7,  4 left 3,  1 left 6"; got != want {
		t.Errorf("limits %s, want %s", got, want)
	}
}

func TestCharges_Invalid(t *testing.T) {
	l := limit(t, 5, "1/1s")
	many := make([]mete.Charge, store.MaxCharges)
	for i := range many {
		many[i] = mete.Charge{Key: fmt.Sprint(i), Limit: l, Cost: 0.001}
	}
	for _, tc := range []struct {
		name    string
		charges []mete.Charge
		want    error
	}{
		{"no key", []mete.Charge{{Limit: l}}, mete.ErrRequest},
		{"no limit", []mete.Charge{{Key: "k", Cost: 0.001}}, mete.ErrRequest},
		{"a long key", []mete.Charge{{Key: strings.Repeat("k", store.MaxKeyBytes+1), Limit: l}}, mete.ErrRequest},
		{"a negative cost", []mete.Charge{{Key: "k", Limit: l, Cost: -0.001}}, mete.ErrCost},
		{"a huge cost", []mete.Charge{{Key: "k", Limit: l, Cost: mete.TokensOf(bucket.MaxTokens + 1)}}, mete.ErrCost},
		{"a huge sum", []mete.Charge{{Key: "k", Limit: l, Cost: mete.TokensOf(bucket.MaxTokens)}, {Key: "k", Limit: l, Cost: 0.001}}, mete.ErrCost},
		{"two limits", []mete.Charge{{Key: "k", Limit: l}, {Key: "k", Limit: limit(t, 6, "1/1s")}}, mete.ErrRequest},
		{"another limit than the policy's", []mete.Charge{{Key: "global:", Limit: l}}, mete.ErrRequest},
		{"too many", many, mete.ErrRequest},
		{"negative shards", []mete.Charge{{Key: "k", Limit: l, Shards: -1}}, mete.ErrRequest},
		{"too many shards", []mete.Charge{{Key: "k", Limit: l, Shards: 1_000_000}}, mete.ErrRequest},
		{"a key that shards may have", []mete.Charge{{Key: "k|#1", Limit: l}}, mete.ErrRequest},
	} {
		r := newRig(t, nested)
		if _, err := r.Take(t.Context(), mete.Request{Charges: tc.charges}); !errors.Is(err, tc.want) {
			t.Errorf("%s: error %v, want %v", tc.name, err, tc.want)
		} else if strings.Contains(err.Error(), "kkk") {
			t.Errorf("%s: the error shows the key: %v", tc.name, err)
		} else if got := err.Error(); !strings.HasPrefix(got, "mete: ") || strings.Count(got, "mete: ") != 1 {
			t.Errorf("%s: error %q, want one that says once, and first, whose it is", tc.name, got)
		}
		if _, err := r.Reserve(t.Context(), mete.Request{Charges: tc.charges}); !errors.Is(err, tc.want) {
			t.Errorf("%s: reserve: error %v, want %v", tc.name, err, tc.want)
		}
		r.holds(nil, 3)
	}
}

func TestCharges_MaxCharges(t *testing.T) {
	r, l := newBare(t, mete.Config{}), limit(t, 5, "1/1s")
	charges := make([]mete.Charge, store.MaxCharges)
	for i := range charges {
		charges[i] = mete.Charge{Key: fmt.Sprint(i), Limit: l, Cost: 1}
	}
	d := r.do("take", func() (mete.Decision, error) { return r.Take(t.Context(), mete.Request{Charges: charges}) })
	if !d.Allowed || len(d.Limits()) != store.MaxCharges {
		t.Errorf("%d limits, allowed %v", len(d.Limits()), d.Allowed)
	}
}

// Buckets with anchor: key have different intervals, with and without a policy.
func TestCharges_AnchorKey(t *testing.T) {
	r := newBare(t, mete.Config{})
	l := compile(t, bucket.Spec{Algorithm: bucket.AlgorithmStepped, Capacity: bucket.Token, Anchor: bucket.AnchorKey,
		Rate: bucket.Rate{Tokens: bucket.Token, Per: time.Hour}})
	waits := map[time.Duration]bool{}
	for i := range 20 {
		req := mete.Request{Charges: []mete.Charge{{Key: fmt.Sprint("user", i), Limit: l, Cost: 1}}}
		r.Take(t.Context(), req)
		d := r.do("take", func() (mete.Decision, error) { return r.Take(t.Context(), req) })
		waits[d.RetryAfter] = true
	}
	if len(waits) < 15 {
		t.Errorf("20 keys come back at %d instants, want about as many", len(waits))
	}
}

// For charges without a rule, Config.OnStoreError decides after a store error.
func TestCharges_StoreFails(t *testing.T) {
	for _, tc := range []struct {
		then  policy.OnStoreError
		allow bool
	}{{policy.OnStoreErrorOpen, true}, {policy.OnStoreErrorClosed, false}} {
		l, err := mete.New(brokenStore{errors.New("gone")}, nil, mete.Config{OnStoreError: tc.then})
		if err != nil {
			t.Fatal(err)
		}
		req := mete.Request{Charges: []mete.Charge{{Key: "k", Limit: limit(t, 5, "1/1s"), Cost: 1}}}
		if d, err := l.Take(t.Context(), req); err != nil || d.Allowed != tc.allow || !d.Degraded {
			t.Errorf("%v: %+v, error %v; want allowed %v", tc.then, d, err, tc.allow)
		}
	}
}

// Without a policy, a cost in addition to charges is an error.
func TestTake_CostWithoutAPolicy(t *testing.T) {
	l, err := mete.New(storetest.NewModel(storetest.NewClock().Now), nil, mete.Config{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = l.Take(t.Context(), mete.Request{Cost: 1, Charges: []mete.Charge{{Key: "k", Limit: limit(t, 1, "1/1h")}}})
	if !errors.Is(err, mete.ErrRequest) {
		t.Errorf("error %v, want one that says where the cost belongs", err)
	}
}
