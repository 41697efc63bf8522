// SPDX-License-Identifier: Apache-2.0

package mete_test

import (
	"context"
	"testing"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/memstore"
	"github.com/metehq/mete/policy"
)

// With break_glass, all requests pass, including their own charges, and nothing is charged. An allow override
// applies only to rules.
func TestBreakGlass_AndChargesOfTheRequest(t *testing.T) {
	for _, tc := range []struct {
		extra   string
		allowed int
	}{
		{`"break_glass": {"reason": "r", "expires_at": "2100-01-01T00:00:00Z"}`, 5},
		{`"overrides": [{"id": "a", "action": "allow", "match": {"path": "/"}, "reason": "r", "author": "a", "expires_at": "2100-01-01T00:00:00Z"}]`, 2},
	} {
		m, err := policy.Load([]byte(`{"rules": [{"name": "r", "limit_keys": [], "algorithm_config": {"rps": 1, "burst": 1}}], `+tc.extra+`}`), policy.Options{})
		if err != nil {
			t.Fatal(err)
		}
		store, err := memstore.New(memstore.Config{Now: func() bucket.Instant { return 1 }})
		if err != nil {
			t.Fatal(err)
		}
		l, err := mete.New(store, m, mete.Config{})
		if err != nil {
			t.Fatal(err)
		}
		two, err := bucket.NewLimit(2*bucket.Token, bucket.PerSecond(bucket.Token))
		if err != nil {
			t.Fatal(err)
		}
		allowed := 0
		for range 5 {
			d, err := l.Take(context.Background(), mete.Request{
				Attributes: mete.Attrs{"path": "/"},
				Charges:    []mete.Charge{{Key: "own", Limit: two, Cost: 1}},
			})
			if err != nil || d.Override == nil {
				t.Fatalf("%+v, %v: want a decision by an override", d, err)
			}
			if d.Allowed {
				allowed++
			}
		}
		if allowed != tc.allowed {
			t.Errorf("%s: %d of 5 pass, want %d", tc.extra, allowed, tc.allowed)
		}
	}
}
