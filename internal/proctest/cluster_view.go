// SPDX-License-Identifier: Apache-2.0

package proctest

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// A member is a node in the view of another node: a line of CLUSTER NODES.
type member struct {
	id, addr string
	flags    []string // myself, master, slave, fail?, fail, handshake, noaddr
	master   string   // ID of the master, of a replica
	epoch    int
	linked   bool
	slots    []string // "0-5460" or "5461"; "[…]" during a migration
}

func (m member) is(flag string) bool { return slices.Contains(m.flags, flag) }

func (m member) has(slot int) bool {
	return slices.ContainsFunc(m.slots, func(slots string) bool {
		first, last, isRange := strings.Cut(slots, "-")
		if !isRange {
			last = first
		}
		from, err := strconv.Atoi(first)
		to, err2 := strconv.Atoi(last)
		return err == nil && err2 == nil && from <= slot && slot <= to
	})
}

func members(node *Redis) ([]member, error) {
	text, err := node.Do("CLUSTER", "NODES")
	if err != nil {
		return nil, err
	}
	var known []member
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if len(f) < 8 {
			return nil, fmt.Errorf("CLUSTER NODES: short line %q", line)
		}
		addr, _, _ := strings.Cut(f[1], "@")
		epoch, err := strconv.Atoi(f[6])
		if err != nil {
			return nil, fmt.Errorf("CLUSTER NODES: %w", err)
		}
		known = append(known, member{
			id: f[0], addr: addr, flags: strings.Split(f[2], ","), master: f[3],
			epoch: epoch, linked: f[7] == "connected", slots: f[8:],
		})
	}
	slices.SortFunc(known, func(a, b member) int { return strings.Compare(a.id, b.id) })
	return known, nil
}

// checkLinks returns an error unless every node knows and reaches every other.
func (c *Cluster) checkLinks() error {
	for _, node := range c.Nodes {
		known, err := members(node)
		if err != nil {
			return err
		}
		reached := 0
		for _, m := range known {
			if m.linked && !m.is("handshake") {
				reached++
			}
		}
		if reached != len(c.Nodes) {
			return fmt.Errorf("%s reaches %d of %d nodes", node.Addr, reached, len(c.Nodes))
		}
	}
	return nil
}

func (c *Cluster) checkReady() error {
	living := c.livingNodes()
	var agreed string
	for i, node := range living {
		info, err := node.Do("CLUSTER", "INFO")
		if err != nil {
			return err
		}
		if !strings.Contains(info, "cluster_state:ok") {
			return fmt.Errorf("%s says %q", node.Addr, info)
		}
		known, err := members(node)
		if err != nil {
			return err
		}
		seen, err := commonView(known, living)
		if err != nil {
			return fmt.Errorf("%s: %w", node.Addr, err)
		}
		if i > 0 && seen != agreed {
			return fmt.Errorf("%s sees\n%s\n%s sees\n%s", living[0].Addr, agreed, node.Addr, seen)
		}
		agreed = seen
		if err := checkReplica(node); err != nil {
			return err
		}
	}
	return nil
}

// commonView returns the view of a node in a form that is equal on all nodes. It fails if the node does not know
// exactly the living nodes.
func commonView(known []member, living []*Redis) (string, error) {
	var b strings.Builder
	count := 0
	for _, m := range known {
		if m.is("fail") || m.is("noaddr") {
			continue
		}
		alive := slices.ContainsFunc(living, func(node *Redis) bool { return node.Addr == m.addr })
		if !alive || !m.linked || m.is("fail?") || m.is("handshake") {
			return "", fmt.Errorf("%s is %v, connected: %t, alive: %t", m.addr, m.flags, m.linked, alive)
		}
		count++
		fmt.Fprintln(&b, m.id, m.addr, m.master, m.epoch, m.slots)
	}
	if count != len(living) {
		return "", fmt.Errorf("%d nodes of %d that live", count, len(living))
	}
	return b.String(), nil
}

// checkReplica returns an error if the node is a replica that lags behind its master.
func checkReplica(node *Redis) error {
	info, err := node.Do("INFO", "replication")
	if err != nil {
		return err
	}
	if strings.Contains(info, "role:slave") && !strings.Contains(info, "master_link_status:up") {
		return fmt.Errorf("replica %s has no link to its master", node.Addr)
	}
	return nil
}
