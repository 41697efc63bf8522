// SPDX-License-Identifier: Apache-2.0

package mete_test

import (
	"context"
	"testing"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/memstore"
	"github.com/metehq/mete/policy"
)

// staged returns a limiter with one rule: a budget of 10 per day with a warning from 50% on and a delay from 80% on.
func staged(t *testing.T, mode string) (*mete.Limiter, *bucket.Instant) {
	t.Helper()
	m, err := policy.Load([]byte(`{"name": "r", "limit_keys": [], "mode": "`+mode+`", "algorithm": "cost_based", "algorithm_config": {"budget": 10, "period": "1d",
		"staged_actions": [{"threshold": 50, "action": "warn"}, {"threshold": 80, "action": "throttle", "delay": "200ms"}, {"threshold": 100, "action": "reject"}]}}`),
		policy.Options{})
	if err != nil {
		t.Fatal(err)
	}
	now := bucket.Instant(1)
	store, err := memstore.New(memstore.Config{Now: func() bucket.Instant { return now }})
	if err != nil {
		t.Fatal(err)
	}
	l, err := mete.New(store, m, mete.Config{})
	if err != nil {
		t.Fatal(err)
	}
	return l, &now
}

// As the budget is used, requests are warned, then delayed, then denied. The next period starts from the beginning.
func TestStages(t *testing.T) {
	l, now := staged(t, "enforce")
	for day := range 2 {
		for i := 1; i <= 11; i++ {
			d, err := l.Take(context.Background(), mete.Request{})
			if err != nil {
				t.Fatal(err)
			}
			stage, delay := d.Limits()[0].Stage(), time.Duration(0)
			if i >= 8 && i <= 10 {
				delay = 200 * time.Millisecond
			}
			if (stage != nil) != (i >= 5 && i <= 10) || d.Wait != delay || d.Allowed != (i <= 10) {
				t.Errorf("day %d, request %d: stage %+v, wait %v, allowed %t", day, i, stage, d.Wait, d.Allowed)
			}
			if i == 11 && d.Reason != "budget_exceeded" {
				t.Errorf("reason %q", d.Reason)
			}
		}
		*now = now.Add(24 * time.Hour)
	}
}

// A shadow rule delays no request.
func TestStages_InShadow(t *testing.T) {
	l, _ := staged(t, "shadow")
	for i := range 11 {
		d, err := l.Take(context.Background(), mete.Request{})
		if err != nil || !d.Allowed || d.Wait != 0 {
			t.Errorf("request %d: %+v, %v, want it allowed at once", i, d, err)
		}
	}
}
