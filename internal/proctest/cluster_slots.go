// SPDX-License-Identifier: Apache-2.0

package proctest

import (
	"strconv"
	"strings"
)

// A SlotStep is the progress of a slot migration.
type SlotStep int

// The steps in order. The old owner still serves the slot, and redirects clients to the new owner with -ASK
// for keys that it no longer has.
const (
	SlotMarked  SlotStep = iota // both nodes know of the migration; no key has moved
	SlotHalf                    // half of the keys have moved, rounded up
	SlotEmptied                 // all keys have moved
)

// migrateTimeout is the time limit of one MIGRATE, in milliseconds.
const migrateTimeout = "5000"

// Owner returns the living node that serves a slot. If several claim it, Owner returns the one with the
// newest configuration epoch. The test fails if no node claims it.
func (c *Cluster) Owner(slot int) *Redis {
	c.t.Helper()
	var owner *Redis
	epoch := -1
	for _, node := range c.livingNodes() {
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

func (c *Cluster) SlotOf(key string) int {
	c.t.Helper()
	slot, err := strconv.Atoi(c.livingNodes()[0].must("CLUSTER", "KEYSLOT", key))
	if err != nil {
		c.t.Fatalf("slot of %q: %v", key, err)
	}
	return slot
}

// MigrateSlot moves a slot with its keys to another master. If between is not nil, it runs after every step
// except the last one, which announces the new owner to all masters. Replicas learn of the owner later: see
// [Cluster.WaitReady].
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

	// The new owner comes first: otherwise the slot has no owner in between.
	to.must("CLUSTER", "SETSLOT", number, "NODE", toID)
	from.must("CLUSTER", "SETSLOT", number, "NODE", toID)
	for _, node := range c.livingNodes() {
		isMaster := strings.Contains(node.must("INFO", "replication"), "role:master")
		if node != from && node != to && isMaster {
			node.must("CLUSTER", "SETSLOT", number, "NODE", toID)
		}
	}
}

// moveKeys moves 1/part of the keys of a slot, rounded up, one by one.
func moveKeys(from, to *Redis, slot string, part int) {
	from.t.Helper()
	count, err := strconv.Atoi(from.must("CLUSTER", "COUNTKEYSINSLOT", slot))
	if err != nil {
		from.t.Fatalf("keys of slot %s: %v", slot, err)
	}
	for range (count + part - 1) / part {
		key := from.must("CLUSTER", "GETKEYSINSLOT", slot, "1")
		from.must("MIGRATE", "127.0.0.1", portOf(to.Addr), key, "0", migrateTimeout)
	}
}
