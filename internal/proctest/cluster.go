// SPDX-License-Identifier: Apache-2.0

package proctest

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"
)

const (
	clusterSlots = 16384

	// nodeTimeout is the time in milliseconds after which a silent node counts as failed.
	nodeTimeout = "1500"

	clusterTimeout = 30 * time.Second
)

// A Cluster is a Redis Cluster for a test. Only the test's goroutine may call its methods.
type Cluster struct {
	// Nodes are in the order of the start: the masters by slot, then one replica of each master, and so on.
	Nodes []*Redis
	Addrs []string // of Nodes

	t testing.TB
}

// StartCluster starts a cluster of masters that share the slots evenly, each with the given number of replicas, and
// waits until the cluster is ready. The args go to every node. A silent node counts as failed after 1.5 s.
func StartCluster(t testing.TB, masters, replicas int, args ...string) *Cluster {
	t.Helper()
	c := &Cluster{t: t}
	for range masters * (1 + replicas) {
		addr := FreeAddr(t)
		c.Nodes = append(c.Nodes, startRedis(t, addr, nil, slices.Concat([]string{
			"--port", portOf(addr), "--cluster-enabled", "yes", "--cluster-node-timeout", nodeTimeout,
		}, args)))
		c.Addrs = append(c.Addrs, addr)
	}
	for i, node := range c.Nodes {
		node.must("CLUSTER", "SET-CONFIG-EPOCH", strconv.Itoa(i+1))
		if i < masters {
			node.must(addSlots(i*clusterSlots/masters, (i+1)*clusterSlots/masters)...)
		}
		node.must("CLUSTER", "MEET", "127.0.0.1", portOf(c.Addrs[0]))
	}
	c.waitUntil("nodes know each other", c.checkLinks)
	for i, node := range c.Nodes[masters:] {
		node.must("CLUSTER", "REPLICATE", c.Nodes[i%masters].must("CLUSTER", "MYID"))
	}
	c.WaitReady()
	return c
}

// addSlots returns the command that assigns the slots from first up to but excluding end, in the syntax of Redis 6.
func addSlots(first, end int) []string {
	command := []string{"CLUSTER", "ADDSLOTS"}
	for slot := first; slot < end; slot++ {
		command = append(command, strconv.Itoa(slot))
	}
	return command
}

func loopback(port int) string { return fmt.Sprintf("127.0.0.1:%d", port) }

// WaitReady waits until all running nodes agree on the owners of all slots, expect no other node, and all
// replicas follow their masters. After the death of a master, it waits for the failover.
func (c *Cluster) WaitReady() {
	c.t.Helper()
	c.waitUntil("cluster is ready", c.checkReady)
}

func (c *Cluster) waitUntil(what string, check func() error) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), clusterTimeout)
	defer cancel()
	if err := Poll(ctx, func(context.Context) error { return check() }); err != nil {
		c.t.Fatalf("waiting until %s: %v", what, err)
	}
}

func (c *Cluster) livingNodes() []*Redis {
	c.t.Helper()
	living := slices.Collect(func(yield func(*Redis) bool) {
		for _, node := range c.Nodes {
			if node.Process.isRunning() && !yield(node) {
				return
			}
		}
	})
	if len(living) == 0 {
		c.t.Fatal("no node of the cluster answers")
	}
	return living
}
