// SPDX-License-Identifier: Apache-2.0

package mete_test

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/testseed"
	"github.com/metehq/mete/storetest"
)

// A cost of 3 is three tokens in a request and in its charges. Fractions are exact.
func TestTokens_AreWhatTheySay(t *testing.T) {
	l, own := newPeeker(t), newBare(t, mete.Config{})
	small := limit(t, 10, "1/1h")
	ofCharge := func(cost mete.Tokens) (mete.Decision, error) {
		return own.Peek(t.Context(), mete.Request{Charges: []mete.Charge{{Key: "k", Limit: small, Cost: cost}}})
	}
	tenth, third := mete.Tokens(0.1), mete.Tokens(1)/3
	for _, tt := range []struct {
		cost mete.Tokens
		want bucket.Tokens
	}{
		{3, 3000}, {1, 1000}, {0.25, 250}, {0.001, 1}, {tenth * 3, 300}, {1234 * 0.0025, 3085},
		{1e12, 1e15}, {4_000_000_000_000.001, 4_000_000_000_000_001}, {mete.TokensOf(bucket.MaxTokens), bucket.MaxTokens},
	} {
		if d, err := l.Peek(t.Context(), mete.Request{Cost: tt.cost}); err != nil || d.Taken != tt.want && d.Limits()[0].Cost != tt.want {
			t.Errorf("%v: taken %v, cost %v, error %v; want %v", tt.cost, d.Taken, d.Limits()[0].Cost, err, tt.want)
		}
		if d, err := ofCharge(tt.cost); err != nil || d.Limits()[0].Cost != tt.want {
			t.Errorf("a charge of %v: cost %v, error %v; want %v", tt.cost, d.Limits()[0].Cost, err, tt.want)
		}
	}
	for _, cost := range []mete.Tokens{-1, -0.001, 1e-7, -1e-7, 0.0004, third, 0.0005, 1e13, mete.Tokens(math.NaN()), mete.Tokens(math.Inf(1)), mete.Tokens(math.Inf(-1))} {
		if _, err := l.Peek(t.Context(), mete.Request{Cost: cost}); !errors.Is(err, mete.ErrCost) {
			t.Errorf("%v: %v, want %v", cost, err, mete.ErrCost)
		}
		if _, err := ofCharge(cost); !errors.Is(err, mete.ErrCost) {
			t.Errorf("a charge of %v: %v, want %v", cost, err, mete.ErrCost)
		}
	}
}

// Every amount up to 4 trillion tokens survives a round trip.
func TestTokensOf_IsExact(t *testing.T) {
	l := newPeeker(t)
	r := rand.New(testseed.PCG(20261123, 1))
	for range 20_000 {
		want := bucket.Tokens(r.Int64N(1<<r.IntN(52))) + 1
		d, err := l.Peek(t.Context(), mete.Request{Cost: mete.TokensOf(want)})
		if err != nil || d.Limits()[0].Cost != want {
			t.Fatalf("%d thousandths: %v, %v", want, d.Limits(), err)
		}
	}
}

func newPeeker(t *testing.T) *mete.Limiter {
	t.Helper()
	l, err := mete.New(storetest.NewModel(storetest.NewClock().Now), load(t, `{"name": "all", "limit_keys": [], "algorithm_config": {"rate": "1/1h", "burst": 10}}`), mete.Config{})
	if err != nil {
		t.Fatal(err)
	}
	return l
}
