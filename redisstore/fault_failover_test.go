// SPDX-License-Identifier: Apache-2.0

package redisstore_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/metehq/mete/internal/proctest"
	"github.com/metehq/mete/redisstore"
)

// A replica that takes over may not have what its master acknowledged last: that
// is forgiven, and no more than what a bucket holds.
func TestFault_SentinelFailover(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*proctest.Redis){
		"master killed": (*proctest.Redis).Kill,
		"master paused": (*proctest.Redis).Pause,
	} {
		t.Run(name, func(t *testing.T) {
			alone(t)
			sentinel := proctest.StartSentinel(t)
			url := "redis+sentinel://" + strings.Join(sentinel.Addrs, ",") + "/" + sentinel.MasterName
			s, client := dialURL(t, url, redisstore.Config{})
			tr := startTraffic(t, s, client, plainAndOthers())
			tr.goesOn(150)
			master, replica := sentinel.Master(), sentinel.Replica()
			end(master)
			sentinel.WaitMaster(replica)
			tr.goesOn(150)
			if name == "master paused" {
				master.Resume() // and is told that it is none
				tr.goesOn(50)
			}
			tr.stop()
			tr.harmed()
			tr.prompt()
			tr.bounded(1)
		})
	}
}

// A master that hands its place over to its replica loses nothing. One that is
// lost may.
func TestFault_ClusterNodeLost(t *testing.T) {
	alone(t)
	c := proctest.StartCluster(t, 3, 1)
	s, client := dialURL(t, "redis+cluster://"+strings.Join(c.Addrs, ","), redisstore.Config{})
	tr := startTraffic(t, s, client, plainAndOthers())
	tr.goesOn(50)
	master := c.Owner(c.SlotOf("tb:plain"))
	must(t, c.Nodes[slices.Index(c.Nodes, master)+3], "CLUSTER", "FAILOVER")
	eventually(t, "the replica is master", func() error {
		if c.Owner(c.SlotOf("tb:plain")) == master {
			return errors.New("not yet")
		}
		return nil
	})
	tr.goesOn(50)
	tr.stop()
	undone(t, s)
	tr.prompt()
	tr.bounded(0)
	tr.conserved()

	var takers []*taker
	for range 2 { // in all slots, and together
		takers = append(takers, &taker{charges: chargesOf("a", "b", "c", "d")}, &taker{charges: chargesOf("d", "e", "f"), ids: true},
			&taker{charges: chargesOf("{plain}g")})
	}
	c.WaitReady()
	tr = startTraffic(t, s, client, takers)
	tr.goesOn(100)
	lost := c.Owner(c.SlotOf("tb:{plain}g"))
	lost.Kill()
	c.WaitReady()
	tr.goesOn(100)
	lost.Restart()
	c.WaitReady()
	tr.goesOn(50)
	tr.stop()
	undone(t, s)
	tr.harmed()
	tr.prompt()
	tr.bounded(1)
}
