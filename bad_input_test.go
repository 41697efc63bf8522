// SPDX-License-Identifier: Apache-2.0

package mete_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/store"
	"github.com/metehq/mete/storetest"
)

// A checker is a store that compares hash keys, like the shared stores.
type checker struct {
	mete.Store
	known string
	err   error // where the store does not answer
	asked int
}

func (c *checker) CheckHashKey(_ context.Context, id string) error {
	c.asked++
	switch {
	case c.err != nil:
		return c.err
	case c.known == "":
		c.known = id
	case c.known != id:
		return fmt.Errorf("%w: set the same policy.Options.HashKey in all processes", policy.ErrHashKey)
	}
	return nil
}

// loadHashed returns a policy that hashes API keys with this key.
func loadHashed(t *testing.T, key string) *policy.Matcher {
	t.Helper()
	m, err := policy.Load([]byte(byAPIKey), policy.Options{HashKey: []byte(key)})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// Each error has a type, and its text contains the remedy.
func TestBadInput(t *testing.T) {
	naive := storetest.NewModel(storetest.NewClock().Now)
	newLimiter := func(s mete.Store, m *policy.Matcher) *mete.Limiter {
		t.Helper()
		l, err := mete.New(s, m, mete.Config{})
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	second := func(_ *mete.Limiter, err error) error { return err }
	take := func(_ mete.Decision, err error) error { return err }
	l := newLimiter(naive, load(t, byAddress))
	shared := &checker{Store: naive}
	newLimiter(shared, loadHashed(t, "one"))
	tooMuch := mete.TokensOf(bucket.MaxTokens) * 2
	own := func(cost bucket.Tokens) mete.Request {
		return mete.Request{Charges: []mete.Charge{{Key: "k", Limit: limit(t, 5, "1/1s"), Cost: mete.TokensOf(cost)}}}
	}
	_, noRate := bucket.ParseRate("10 per minute")
	for name, tt := range map[string]struct {
		err    error
		want   error
		remedy string
	}{
		"no store":                        {second(mete.New(nil, nil, mete.Config{})), store.ErrRequired, "memstore.New, redisstore.Open or pgstore.Open"},
		"no policy":                       {l.SetPolicy(nil), policy.ErrRequired, "policy.Load or policyyaml.LoadFile"},
		"a rate without a slash":          {noRate, bucket.ErrRate, `"10 per minute" has no slash: write tokens/duration, as in 7/1m`},
		"a cost above the bound":          {take(l.Take(t.Context(), mete.Request{Cost: tooMuch})), mete.ErrCost, "between 0 (the rule's own) and " + bucket.MaxTokens.String()},
		"a cost below a thousandth":       {take(l.Take(t.Context(), mete.Request{Cost: 0.0004})), mete.ErrCost, "must be a multiple of 0.001"},
		"an own cost above the bound":     {take(l.Take(t.Context(), own(bucket.MaxTokens+1))), mete.ErrCost, "must be between 0 and " + bucket.MaxTokens.String()},
		"an own cost of a two-thousandth": {take(l.Take(t.Context(), mete.Request{Charges: []mete.Charge{{Key: "k", Limit: limit(t, 5, "1/1s"), Cost: 0.0005}}})), mete.ErrCost, "in steps of 0.001"},
		"another secret of the store":     {second(mete.New(shared, loadHashed(t, "two"), mete.Config{})), policy.ErrHashKey, "policy.Options.HashKey in all processes"},
		"another secret by a wrapper":     {second(mete.New(around{around{shared}}, loadHashed(t, "two"), mete.Config{})), policy.ErrHashKey, "policy.Options.HashKey in all processes"},
		"another secret by a SetPolicy":   {newLimiter(shared, load(t, byAddress)).SetPolicy(loadHashed(t, "two")), policy.ErrHashKey, "policy.Options.HashKey in all processes"},
	} {
		if !errors.Is(tt.err, tt.want) || !strings.Contains(fmt.Sprint(tt.err), tt.remedy) {
			t.Errorf("%s: error %v; want one that wraps %q and says %q", name, tt.err, tt.want, tt.remedy)
		}
	}
}

// An invalid rate in a policy is an error with its position, its value and the expected form.
func TestBadInput_RateOfAPolicy(t *testing.T) {
	_, err := policy.Load([]byte(`{"name": "r", "limit_keys": [], "algorithm_config": {"rate": "10 per minute", "burst": 1}}`), policy.Options{})
	var all policy.Errors
	if !errors.As(err, &all) || len(all) != 1 {
		t.Fatalf("error %v, want one policy.Error", err)
	}
	if e := all[0]; e.Path != "/algorithm_config/rate" || e.Value != `"10 per minute"` || !strings.Contains(e.Error(), "as in") {
		t.Errorf("error %+v: want the place, the value and the remedy", e)
	}
}

// The largest cost is valid.
func TestBadInput_LargestCost(t *testing.T) {
	l := newPeeker(t)
	for name, req := range map[string]mete.Request{
		"of the request": {Cost: mete.TokensOf(bucket.MaxTokens)},
		"of a charge":    {Charges: []mete.Charge{{Key: "k", Limit: limit(t, 5, "1/1s"), Cost: mete.TokensOf(bucket.MaxTokens)}}},
		"of three charges": {Charges: []mete.Charge{
			{Key: "k", Limit: limit(t, 5, "1/1s"), Cost: 4e12}, {Key: "k", Limit: limit(t, 5, "1/1s"), Cost: 4e12},
			{Key: "k", Limit: limit(t, 5, "1/1s"), Cost: mete.TokensOf(bucket.MaxTokens - 8e15)}}},
	} {
		d, err := l.Take(t.Context(), req)
		if err != nil || d.Allowed || d.RetryAfter != bucket.Never {
			t.Errorf("%s: %+v, error %v; want denied, and no wait that helps", name, d, err)
		}
	}
}

// During an outage, a limiter keeps a hash key that the store has confirmed. It rejects a new key, because the
// store cannot confirm it.
func TestSetPolicy_OtherHashKeyInAnOutage(t *testing.T) {
	away := errors.New("away")
	shared := &checker{Store: storetest.NewModel(storetest.NewClock().Now), err: away}
	one := loadHashed(t, "one")
	if _, err := mete.New(shared, one, mete.Config{}); !errors.Is(err, away) || !strings.Contains(err.Error(), "try again when the store answers") {
		t.Errorf("New in an outage: error %v; want one that names the remedy", err)
	}
	shared.err = nil
	l, err := mete.New(shared, one, mete.Config{})
	if err != nil || shared.known != one.HashKeyID() {
		t.Fatalf("New when the store answers: error %v, and the store knows the key %q", err, shared.known)
	}
	shared.err = away
	if err := l.SetPolicy(loadHashed(t, "two")); !errors.Is(err, away) || !strings.Contains(err.Error(), "try again when the store answers") || l.Policy() != one {
		t.Errorf("SetPolicy with another key in an outage: error %v; want one that names the remedy, and the policy unchanged", err)
	}
	before := shared.asked
	if err := l.SetPolicy(loadHashed(t, "one")); err != nil || shared.asked != before {
		t.Errorf("a key that the store has found right: error %v, and %d more calls; want none", err, shared.asked-before)
	}
	shared.err = nil
	if err := l.SetPolicy(loadHashed(t, "two")); !errors.Is(err, policy.ErrHashKey) {
		t.Errorf("SetPolicy with another key: error %v, want ErrHashKey", err)
	}
}
