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

	// nodeTimeout is after how many milliseconds without an answer a node counts
	// as failed.
	nodeTimeout = "1500"

	clusterTimeout = 30 * time.Second
)

// A Cluster is Redis Cluster beside a test. Its methods are the test's own
// goroutine's, while its nodes live and die.
type Cluster struct {
	// Nodes are, as it began, the masters in the order of their slots, then a
	// replica of each in the same order, and so on.
	Nodes []*Redis
	Addrs []string // the nodes', in their order

	t testing.TB
}

// StartCluster starts a cluster of so many masters, which share the slots evenly,
// and so many replicas of each, and waits until all is in order. More arguments
// go to every node. A node counts as failed after 1.5 s.
func StartCluster(t testing.TB, masters, replicas int, args ...string) *Cluster {
	t.Helper()
	c := &Cluster{t: t}
	for range masters * (1 + replicas) {
		addr := FreeAddr(t)
		c.Nodes = append(c.Nodes, startRedis(t, addr, nil, slices.Concat([]string{
			"--port", port(addr), "--cluster-enabled", "yes", "--cluster-node-timeout", nodeTimeout,
		}, args)))
		c.Addrs = append(c.Addrs, addr)
	}
	for i, node := range c.Nodes {
		node.must("CLUSTER", "SET-CONFIG-EPOCH", strconv.Itoa(i+1))
		if i < masters {
			node.must(addSlots(i*clusterSlots/masters, (i+1)*clusterSlots/masters)...)
		}
		node.must("CLUSTER", "MEET", "127.0.0.1", port(c.Addrs[0]))
	}
	c.await("nodes know each other", c.introduced)
	for i, node := range c.Nodes[masters:] {
		node.must("CLUSTER", "REPLICATE", c.Nodes[i%masters].must("CLUSTER", "MYID"))
	}
	c.WaitReady()
	return c
}

// addSlots is the command that gives a node the slots from first to before end,
// in words that Redis 6 knows.
func addSlots(first, end int) []string {
	command := []string{"CLUSTER", "ADDSLOTS"}
	for slot := first; slot < end; slot++ {
		command = append(command, strconv.Itoa(slot))
	}
	return command
}

func loopback(port int) string { return fmt.Sprintf("127.0.0.1:%d", port) }

// WaitReady waits until the nodes that live and are not paused agree on who has
// which slots, have all slots between them, and no longer count on any other
// node; and until their replicas follow their masters. So after a node was
// killed, until another has taken its place.
func (c *Cluster) WaitReady() {
	c.t.Helper()
	c.await("cluster is ready", c.ready)
}

func (c *Cluster) await(what string, check func() error) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), clusterTimeout)
	defer cancel()
	if err := Poll(ctx, func(context.Context) error { return check() }); err != nil {
		c.t.Fatalf("waiting until %s: %v", what, err)
	}
}

// living are the nodes that answer.
func (c *Cluster) living() []*Redis {
	c.t.Helper()
	living := slices.Collect(func(yield func(*Redis) bool) {
		for _, node := range c.Nodes {
			if node.Process.answers() && !yield(node) {
				return
			}
		}
	})
	if len(living) == 0 {
		c.t.Fatal("no node of the cluster answers")
	}
	return living
}
