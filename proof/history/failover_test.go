// SPDX-License-Identifier: Apache-2.0

package history_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/metehq/mete/internal/faulttest"
	"github.com/metehq/mete/internal/proctest"
	"github.com/metehq/mete/redisstore"
	"github.com/metehq/mete/store"
)

// startSentinel returns a master with a replica. A failover may lose the last writes, so the model has ranges after it. Limits
// do not change here, and there are no holds and slots: for them, a lost write has no range.
func startSentinel(t testing.TB) *world {
	w := &world{name: "redis with sentinels", keys: allKeys}
	group := proctest.StartSentinel(t)
	url := "redis+sentinel://" + strings.Join(group.Addrs, ",") + "/" + group.MasterName
	w.openRedis(t, slices.Repeat([]string{url}, nodes))
	for _, s := range group.Sentinels { // a slow machine must not cause more failovers
		if _, err := s.Do("SENTINEL", "SET", group.MasterName, "down-after-milliseconds", "4000"); err != nil {
			t.Fatal(err)
		}
	}
	w.faults = []fault{
		{"no fault", quiet, func(*run) {}},
		{"failover", breaking, func(r *run) {
			old, next := group.Master(), group.Replica()
			r.event(lose, 0, func() {
				old.Kill()
				group.WaitMaster(next)
			})
			r.update(func() { r.broken = false })
			old.Restart()
			awaitReplica(r, group, old)
		}},
		{"SIGSTOP of the replica", harmless, func(r *run) {
			replica := group.Replica()
			replica.Pause()
			r.await(clients)
			replica.Resume()
			awaitReplica(r, group, replica)
		}},
	}
	return w
}

// awaitReplica waits until all sentinels know a server as the replica, and it follows the master.
func awaitReplica(r *run, group *proctest.Sentinel, replica *proctest.Redis) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	err := proctest.Poll(ctx, func(context.Context) error {
		info, err := replica.Do("INFO", "replication")
		if err != nil || !strings.Contains(info, "role:slave") || !strings.Contains(info, "master_link_status:up") {
			return fmt.Errorf("replica %s: %q, %w", replica.Addr, info, err)
		}
		for _, s := range group.Sentinels {
			known, err := s.Do("SENTINEL", "REPLICAS", group.MasterName)
			if err != nil || !strings.Contains(known, "flags\nslave\n") || !strings.Contains(known, "master-link-status\nok\n") {
				return fmt.Errorf("sentinel %s knows %q, %w", s.Addr, known, err)
			}
		}
		return nil
	})
	if err != nil {
		r.Fatal(err)
	}
}

// startCluster returns a cluster of three masters that write an AOF before each answer. Its calls have one key each, and are one
// step. With parts, they have keys in several slots: see checkParts. There are no holds, slots and changed limits then.
func startCluster(t testing.TB, parts bool) *world {
	w := &world{name: "redis cluster", keys: allKeys, slotKey: "s", versions: true, slots: true, holds: true, single: true}
	if parts {
		w = &world{name: "redis cluster, several slots", keys: allKeys, parts: true}
	}
	cluster := proctest.StartCluster(t, 3, 0, "--appendonly", "yes", "--appendfsync", "always")
	w.openRedis(t, slices.Repeat([]string{"redis+cluster://" + strings.Join(cluster.Addrs, ",")}, nodes))
	w.quiesce = func(stores []store.Store) {
		faulttest.Eventually(t, "all denied takes are undone", func() error {
			for _, s := range stores {
				if n := s.(*redisstore.Store).Stats().Undoing; n > 0 {
					return fmt.Errorf("%d parts of takes are left", n)
				}
			}
			return nil
		})
	}
	w.faults = []fault{
		{"no fault", quiet, func(*run) {}},
		{"resharding", harmless, func(r *run) {
			for range 2 {
				slot := cluster.SlotOf("tb:" + r.prefix + allKeys[r.rand.IntN(len(allKeys))])
				to := cluster.Nodes[r.rand.IntN(3)]
				if to == cluster.Owner(slot) {
					continue
				}
				cluster.MigrateSlot(slot, to, func(proctest.SlotStep) { r.await(clients / 2) })
				r.await(clients / 2)
			}
			cluster.WaitReady()
		}},
		{"SIGKILL of a node", breaking, func(r *run) {
			node := cluster.Nodes[r.rand.IntN(3)]
			node.Kill()
			r.await(clients)
			node.Restart()
			cluster.WaitReady()
		}},
		{"SIGSTOP of a node", breaking, func(r *run) {
			node := cluster.Nodes[r.rand.IntN(3)]
			node.Pause()
			r.await(clients)
			node.Resume()
			cluster.WaitReady()
		}},
	}
	return w
}
