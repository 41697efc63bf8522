// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"testing"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/store"
)

// checkUnits settles three units with an amount each. The first unit keeps its cost.
func checkUnits(t *testing.T, open Open) {
	s, l := newSubject(t, open), limit(t, 100*bucket.Token, "1/1000h")
	charges := []store.Charge{charge("a", l, 10*bucket.Token), charge("b", l, 20*bucket.Token), charge("c", l, 30*bucket.Token), charge("d", l, 40*bucket.Token)}
	units := []store.Terms{{}, {Unit: 1}, {Unit: 2, Fixed: bucket.Token, Asked: 15 * bucket.Token}, {Unit: 3}}
	h := minuteHold(1)
	h.Terms = units
	_, id := s.hold(h, mete.Mode{}, charges...)
	s.assertState(s.settle(id, store.Keep, 5*bucket.Token, 3*bucket.Token), store.HoldSettled, true)
	assert := func(a, b, c, d bucket.Tokens) {
		t.Helper()
		for i, want := range []bucket.Tokens{a, b, c, d} {
			s.assertRemaining(charges[i].Key, l, want*bucket.Token)
		}
	}
	assert(90, 95, 92, 97) // a higher unit has the last amount
	if again := s.settle(id, 7*bucket.Token); again.State != store.HoldSettled || again.Settled || again.Actual != store.Keep {
		t.Errorf("a second settlement: %+v, want the first one", again)
	}
	assert(90, 95, 92, 97)
	h = store.Hold{ID: holdID(2), TTL: time.Second, Refund: true, Terms: units}
	s.hold(h, mete.Mode{}, charges...)
	s.clock.Advance(1_000_000)
	assert(90, 95, 90, 97) // the expiry settles all units with 0
}
