// SPDX-License-Identifier: Apache-2.0

package mete_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/testseed"
)

// During an outage, a new policy changes the refill of an account's base only from its first take on. Otherwise
// the store would be charged less than the client spends.
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

// After a lost answer, the costs of the attempt and later costs are charged under the new policy, too.
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

// setLimit gives a node a policy of one rule.
func (n *node) setLimit(limit string) {
	n.Helper()
	if err := n.SetPolicy(load(n.T, `{"rules": [{"name": "all", "limit_keys": [], "on_store_error": "local", `+limit+`}]}`)); err != nil {
		n.Fatal(err)
	}
}

// startLimit returns a cluster of one node with a policy of one rule.
func startLimit(t *testing.T, limit string) (*cluster, *node) {
	c := start(t, 1, `{"name": "all", "limit_keys": [], "on_store_error": "local", `+limit+`}`)
	return c, c.nodes[0]
}

// hourly returns a limit that refills one token per hour.
func hourly(burst int) string {
	return fmt.Sprintf(`"algorithm_config": {"rate": "1/1h", "burst": %d}`, burst)
}

// A return to the old policy charges all local costs, although its bucket refilled faster than the other policy's.
func TestOutage_BackToTheOldPolicy(t *testing.T) {
	for _, f := range []fault{down, silent, lossy} {
		c, n := startLimit(t, bursty)
		n.take(50)
		c.cut(down)
		n.take(5)
		n.setLimit(hourly(60))
		n.take(1)
		c.cut(f)
		n.take(1)
		c.advance(7)
		n.setLimit(bursty)
		c.cut(down)
		during := n.drain()
		c.cut(up)
		after, stats := n.drain(), n.Stats()
		if during != 52 || after != 0 || stats.Charged != stats.SpentLocally {
			t.Errorf("fault %d: %d admitted in the outage and %d after it, want 52 and 0; stats %+v", f, during, after, stats)
		}
	}
}

// The fourth policy of an outage evicts the same account from the base as from the local bucket.
func TestOutage_FourPolicies(t *testing.T) {
	c, n := startLimit(t, bursty)
	n.take(30)
	c.cut(down)
	n.take(25)
	for _, limit := range []string{hourly(60), hourly(61), bursty, hourly(62)} {
		n.setLimit(limit)
		n.take(1)
	}
	c.advance(30.0 / 7)
	n.setLimit(bursty) // of 59, 30 have come back
	during := n.drain()
	c.cut(up)
	if after := n.drain(); during+after > 31 {
		t.Errorf("%d admitted in the outage and %d after it, want 31 at most", during, after)
	}
}

// A version that returns during an outage starts with its last known account. The other version's bucket has
// refilled.
func TestOutage_ReturnOfAKnownVersion(t *testing.T) {
	c, n := startLimit(t, hourly(60))
	n.take(50)
	n.setLimit(bursty)
	n.take(1)
	c.advance(10)
	c.cut(down)
	n.take(1)
	n.setLimit(hourly(60))
	during := n.drain()
	c.cut(up)
	if after := n.drain(); during != 9 || after != 0 {
		t.Errorf("%d admitted in the outage and %d after it, want 9 and 0 of 60", during, after)
	}
}

// Recovery charges the accounts of all versions, although the active bucket has refilled. The store may not
// have an account for the other version yet.
func TestOutage_RecoveryChargesAllVersions(t *testing.T) {
	for _, known := range []int{0, 1} {
		for _, f := range []fault{down, silent, lossy} {
			c, n := startLimit(t, hourly(60))
			if known > 0 {
				n.take(known)
			}
			c.cut(down)
			n.take(50 - known)
			n.setLimit(bursty)
			n.take(1)
			c.cut(f)
			n.take(1)
			c.advance(10)
			n.take(1)
			c.cut(up)
			n.take(1)
			c.advance(10)
			n.setLimit(hourly(60))
			if after := n.drain(); after > 6 {
				t.Errorf("%d known, fault %d: %d admitted after 54 of 60, stats %+v", known, f, after, n.Stats())
			} else if f == down && after < 6 {
				t.Errorf("%d known: %d admitted after 54 of 60, stats %+v", known, after, n.Stats())
			}
		}
	}
}

// The store opens and charges the account of another version, although its answers are lost.
func TestOutage_RecoveryOfAVersionFails(t *testing.T) {
	c, n := startLimit(t, hourly(60))
	c.cut(down)
	n.take(50)
	n.setLimit(bursty)
	n.take(1)
	asked := 0
	n.line.hook = func(m mete.Mode) {
		if m.MaxWait == bucket.Forced && m.ID == "" {
			switch asked++; asked {
			case 1: // that opens the account, and does not arrive
				c.cut(silent)
			case 3: // that charges the account
				c.cut(lossy)
			}
		}
	}
	for range 3 {
		c.cut(up)
		n.Peek(t.Context(), mete.Request{})
		c.advance(10)
	}
	n.setLimit(hourly(60))
	if after := n.drain(); after != 9 || asked != 4 {
		t.Errorf("%d admitted after 51 of 60, and %d takes of the other version, want 9 and 4", after, asked)
	}
}

// Recovery charges another version while a sliding log is empty in the store. It then charges the log as well,
// because its older costs leave the window first.
func TestOutage_RecoveryChargesAnEmptyLog(t *testing.T) {
	log := `"algorithm": "sliding_log", "algorithm_config": {"tokens": 60, "window": "9s"}`
	c, n := startLimit(t, hourly(100))
	c.cut(down)
	n.take(1)
	n.setLimit(log)
	n.take(57)
	c.advance(1)
	c.cut(lossy)
	n.take(1) // the charge of 58 arrives, at 1 s
	c.cut(down)
	c.advance(8.1)
	n.take(40) // at 9.1 s, when the local log has only one
	n.setLimit(hourly(100))
	n.take(1)
	c.cut(up)
	n.take(1)
	c.advance(1) // at 10.1 s, the charge leaves the log of the store
	n.setLimit(log)
	if after := n.drain(); after > 20 {
		t.Errorf("%d admitted within 1 s after 40 of 60, stats %+v", after, n.Stats())
	}
}

// With random policy changes in outages, each policy admits at most its own bound.
func TestOutage_RandomPolicies(t *testing.T) {
	limits := []string{
		bursty, hourly(60), hourly(61), hourly(20),
		`"algorithm_config": {"refill": "interval", "rate": "30/5s", "burst": 60}`,
		`"algorithm": "sliding_window", "algorithm_config": {"tokens": 60, "window": "9s"}`,
		`"algorithm": "sliding_log", "algorithm_config": {"tokens": 60, "window": "9s"}`,
	}
	for seed := range uint64(400) {
		r := rand.New(testseed.PCG(seed, 23))
		kinds := 4 // of one algorithm or of all
		if seed%2 == 0 {
			kinds = len(limits)
		}
		versions := r.Perm(kinds)[:2+r.IntN(bucket.MaxAccounts-1)]
		now := versions[0]
		c, n := startLimit(t, limits[now])
		bounds := make(map[int]*ideal)
		for range 120 {
			c.clock.Advance(r.Int64N(300_000))
			switch r.IntN(8) {
			case 0:
				c.cut([]fault{up, down, silent, lossy}[r.IntN(4)])
			case 1:
				now = versions[r.IntN(len(versions))]
				n.setLimit(limits[now])
			case 2:
				c.advance(r.Float64() * 10)
			}
			cost := bucket.Tokens(1+r.IntN(15)) * bucket.Token
			d, err := n.Take(t.Context(), mete.Request{Cost: mete.TokensOf(cost)})
			if err != nil {
				t.Fatal(err)
			}
			if d.Allowed {
				if bounds[now] == nil {
					bounds[now] = &ideal{limit: n.Policy().Rules()[0].Limits[0].Bucket.ForKey("all:")}
				}
				bounds[now].charge(c.clock.Now(), cost)
			}
		}
		for i, b := range bounds {
			if b.worst > bucket.Token/10 { // rounding
				t.Errorf("seed %d: %s admitted %v more than its bound, stats %+v", seed, limits[i], b.worst, n.Stats())
			}
		}
	}
}
