// SPDX-License-Identifier: Apache-2.0

package mete_test

import (
	"testing"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
)

// In an outage, a new policy refills the base of an account in another way only from its
// first take on. Otherwise, the store is charged less than the client spends.
func TestOutage_NewPolicy(t *testing.T) {
	for _, changed := range []string{
		`"algorithm": "sliding_log", "algorithm_config": {"tokens": 60, "window": "9s"}`,
		`"algorithm": "sliding_window", "algorithm_config": {"tokens": 60, "window": "1h"}`,
		`"algorithm_config": {"rate": "1/1h", "burst": 60}`,
	} {
		rule := func(limit string) string {
			return `{"name": "all", "limit_keys": [], "on_store_error": "local", ` + limit + `}`
		}
		c := start(t, 1, rule(bursty))
		n := c.nodes[0]
		n.take(50)
		c.cut(down)
		n.take(10)
		c.advance(7) // of the first 50, 49 have come back
		if err := n.SetPolicy(load(t, `{"rules": [`+rule(changed)+`]}`)); err != nil {
			t.Fatal(err)
		}
		if d := n.take(49); !d.Allowed {
			t.Errorf("%s: 49 of 49: %+v", changed, d)
		}
		n.take(1)
		c.cut(up)
		if after := n.drain(); after != 0 {
			t.Errorf("%s: after the outage, %d of 0 admitted", changed, after)
		}
		if got, want := n.Stats(), (mete.Stats{Local: 3, SpentLocally: 59 * bucket.Token, Charged: 59 * bucket.Token}); got != want {
			t.Errorf("%s: stats %+v, want %+v", changed, got, want)
		}
	}
}

// The costs of an attempt whose answer is lost, and those behind it, are charged under the
// new policy, too.
func TestOutage_NewPolicyBehindALostAnswer(t *testing.T) {
	c := start(t, 1, `{"name": "all", "limit_keys": [], "on_store_error": "local", `+bursty+`}`)
	n := c.nodes[0]
	c.cut(down)
	n.take(50)
	c.cut(lossy)
	n.take(5) // the charge of 50 arrives
	c.advance(7)
	if err := n.SetPolicy(load(t, `{"rules": [{"name": "all", "limit_keys": [], "on_store_error": "local", "algorithm_config": {"rate": "1/1h", "burst": 60}}]}`)); err != nil {
		t.Fatal(err)
	}
	c.cut(down)
	during := n.drain()
	c.cut(up)
	if after := n.drain(); during != 54 || after != 0 {
		t.Errorf("%d admitted under the new policy in the outage and %d after it, want 54 and 0", during, after)
	}
}
