// SPDX-License-Identifier: Apache-2.0

package redisstore_test

import (
	"fmt"
	"testing"

	"github.com/metehq/mete/internal/faulttest"
	"github.com/metehq/mete/internal/proctest"
	"github.com/metehq/mete/redisstore"
)

// undone waits until all canceled parts are refunded.
func undone(t *testing.T, s *redisstore.Store) {
	t.Helper()
	faulttest.Eventually(t, "all is given back", func() error {
		if got := s.Stats().Undoing; got != 0 {
			return fmt.Errorf("%d parts of takes are still to be given back", got)
		}
		return nil
	})
	if lost := s.Stats().Lost; lost != 0 {
		t.Errorf("%d parts of takes will never be given back", lost)
	}
}

// TestFault_Resharding moves a slot between nodes while its buckets are used, alone and together, with and
// without IDs.
func TestFault_Resharding(t *testing.T) {
	faulttest.RunParallel(t)
	c := proctest.StartCluster(t, 3, 0)
	s, client := dialURL(t, "redis+cluster://"+c.Addrs[0], redisstore.Config{})
	var takers []*faulttest.Taker
	for range 2 {
		takers = append(takers,
			&faulttest.Taker{Charges: partCharges("{m}c")},
			&faulttest.Taker{Charges: partCharges("{m}d")},
			&faulttest.Taker{Charges: partCharges("{m}a", "{m}b", "{m}c")},
			&faulttest.Taker{Charges: partCharges("elsewhere", "{m}d")},
			&faulttest.Taker{Charges: partCharges("{m}id"), IDs: true},
			&faulttest.Taker{Charges: partCharges("{m}id:all", "{m}id:all:2"), IDs: true},
			&faulttest.Taker{Charges: partCharges("{n}id:all", "{m}id:all:2"), IDs: true})
	}
	plain := []*faulttest.Taker{takers[0], takers[1], takers[2], takers[3]}
	tr := startTraffic(t, s, client, takers)
	slot := c.SlotOf("tb:{m}a")
	for i := range 4 {
		tr.WaitAnswers(20)
		to := c.Nodes[i%3]
		if to == c.Owner(slot) {
			continue
		}
		c.MigrateSlot(slot, to, func(proctest.SlotStep) { tr.WaitAnswers(20, plain...) })
	}
	tr.WaitAnswers(50)
	tr.Stop()
	undone(t, s)
	tr.CheckFailures() // takes with IDs wait until the slot has moved
	tr.CheckPrompt()
	tr.CheckBound(0)
	tr.CheckConserved()
}
