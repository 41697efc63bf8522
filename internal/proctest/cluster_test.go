// SPDX-License-Identifier: Apache-2.0

package proctest_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/metehq/mete/internal/proctest"
)

func TestCluster_MigrateSlot(t *testing.T) {
	c := proctest.StartCluster(t, 2, 0)
	if len(c.Nodes) != 2 || c.Addrs[0] != c.Nodes[0].Addr || c.Addrs[1] != c.Nodes[1].Addr {
		t.Fatalf("%d nodes at %q, want 2", len(c.Nodes), c.Addrs)
	}
	const tag = "{slot}"
	slot := c.SlotOf(tag)
	from := c.Owner(slot)
	to := c.Nodes[1-slices.Index(c.Nodes, from)]
	for i := range 5 {
		do(t, from, "OK", "SET", fmt.Sprint(tag, i), "value")
	}
	var steps []proctest.SlotStep
	held := func(r *proctest.Redis) string { return r.Addr + " " + keysIn(t, r, slot) }
	want := []string{held(from), from.Addr + " 2", from.Addr + " 0"}
	c.MigrateSlot(slot, to, func(step proctest.SlotStep) {
		steps = append(steps, step)
		if got := held(from); got != want[step] {
			t.Errorf("keys left at step %d: %s, want %s", step, got, want[step])
		}
		if c.Owner(slot) != from {
			t.Errorf("owner at step %d is not the old one", step)
		}
		if _, err := from.Do("GET", tag+"none"); err == nil || !strings.HasPrefix(err.Error(), "ASK ") {
			t.Errorf("a missing key at step %d: %v, want ASK", step, err)
		}
	})
	if want := []proctest.SlotStep{proctest.SlotMarked, proctest.SlotHalf, proctest.SlotEmptied}; !slices.Equal(steps, want) {
		t.Errorf("steps %v, want %v", steps, want)
	}
	if c.Owner(slot) != to {
		t.Error("the slot has not moved")
	}
	do(t, to, "5", "CLUSTER", "COUNTKEYSINSLOT", strconv.Itoa(slot))
	if _, err := from.Do("GET", tag+"0"); err == nil || !strings.HasPrefix(err.Error(), "MOVED ") {
		t.Errorf("the old owner, asked for a key: %v, want MOVED", err)
	}
	c.WaitReady()
	c.MigrateSlot(slot, from, nil)
	do(t, from, "value", "GET", tag+"0")
}

func keysIn(t *testing.T, r *proctest.Redis, slot int) string {
	t.Helper()
	n, err := r.Do("CLUSTER", "COUNTKEYSINSLOT", strconv.Itoa(slot))
	if err != nil {
		t.Error(err)
	}
	return n
}

func TestCluster_Failover(t *testing.T) {
	c := proctest.StartCluster(t, 3, 1)
	if got, want := len(c.Nodes), 6; got != want {
		t.Fatalf("%d nodes, want %d", got, want)
	}
	for i, slot := range []int{0, 16384 / 2, 16383} {
		if c.Owner(slot) != c.Nodes[i] {
			t.Errorf("slot %d is %s's, want master %d's", slot, c.Owner(slot).Addr, i)
		}
	}
	dead := c.Nodes[0]
	dead.Kill()
	c.WaitReady()
	if got := c.Owner(0); got != c.Nodes[3] {
		t.Errorf("slot 0 of the dead master is %s's, want its replica's", got.Addr)
	}
	dead.Restart()
	c.WaitReady()
	if got := c.Owner(0); got != c.Nodes[3] {
		t.Errorf("slot 0 is %s's after its old master came back, want the replica's that took over", got.Addr)
	}
}
