// SPDX-License-Identifier: Apache-2.0

package proctest

import (
	"strconv"
	"strings"
)

// A SlotStep is how far a slot has moved.
type SlotStep int

// The steps in their order. At each the slot still is the old owner's, which
// sends a client that asks for a key it does not have to the new one with -ASK.
const (
	SlotMarked  SlotStep = iota // both know; every key is where it was
	SlotHalf                    // half of the keys have moved, the larger if odd
	SlotEmptied                 // all keys have moved
)

// migrateTimeout is for one MIGRATE, in milliseconds.
const migrateTimeout = "5000"

// Owner returns the node that serves a slot: of the living ones that say so
// themselves, the last that came to it. The test fails when there is none.
func (c *Cluster) Owner(slot int) *Redis {
	c.t.Helper()
	var owner *Redis
	epoch := -1
	for _, node := range c.living() {
		known, err := members(node)
		if err != nil {
			c.t.Fatalf("owner of slot %d: %v", slot, err)
		}
		for _, m := range known {
			if m.is("myself") && m.is("master") && m.has(slot) && m.epoch > epoch {
				owner, epoch = node, m.epoch
			}
		}
	}
	if owner == nil {
		c.t.Fatalf("slot %d has no owner", slot)
	}
	return owner
}

// SlotOf returns the slot of a key.
func (c *Cluster) SlotOf(key string) int {
	c.t.Helper()
	slot, err := strconv.Atoi(c.living()[0].must("CLUSTER", "KEYSLOT", key))
	if err != nil {
		c.t.Fatalf("slot of %q: %v", key, err)
	}
	return slot
}

// MigrateSlot moves a slot with its keys to another master, and calls between,
// unless it is nil, after every step but the last: that all masters know the
// new owner. Replicas learn of it a little later; see [Cluster.WaitReady].
func (c *Cluster) MigrateSlot(slot int, to *Redis, between func(SlotStep)) {
	c.t.Helper()
	if between == nil {
		between = func(SlotStep) {}
	}
	from := c.Owner(slot)
	if from == to {
		c.t.Fatalf("slot %d is %s's already", slot, to.Addr)
	}
	number := strconv.Itoa(slot)
	fromID, toID := from.must("CLUSTER", "MYID"), to.must("CLUSTER", "MYID")

	to.must("CLUSTER", "SETSLOT", number, "IMPORTING", fromID)
	from.must("CLUSTER", "SETSLOT", number, "MIGRATING", toID)
	between(SlotMarked)
	moveKeys(from, to, number, 2)
	between(SlotHalf)
	moveKeys(from, to, number, 1)
	between(SlotEmptied)

	// The new owner first: otherwise the slot is nobody's in between.
	to.must("CLUSTER", "SETSLOT", number, "NODE", toID)
	from.must("CLUSTER", "SETSLOT", number, "NODE", toID)
	for _, node := range c.living() {
		isMaster := strings.Contains(node.must("INFO", "replication"), "role:master")
		if node != from && node != to && isMaster {
			node.must("CLUSTER", "SETSLOT", number, "NODE", toID)
		}
	}
}

// moveKeys moves the share 1/part of a slot's keys, rounded up, one by one.
func moveKeys(from, to *Redis, slot string, part int) {
	from.t.Helper()
	count, err := strconv.Atoi(from.must("CLUSTER", "COUNTKEYSINSLOT", slot))
	if err != nil {
		from.t.Fatalf("keys of slot %s: %v", slot, err)
	}
	for range (count + part - 1) / part {
		key := from.must("CLUSTER", "GETKEYSINSLOT", slot, "1")
		from.must("MIGRATE", "127.0.0.1", port(to.Addr), key, "0", migrateTimeout)
	}
}
