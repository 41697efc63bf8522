// SPDX-License-Identifier: Apache-2.0

package redisstore_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/metehq/mete/internal/faulttest"
	"github.com/metehq/mete/internal/proctest"
	"github.com/metehq/mete/redisstore"
)

// TestFault_SentinelFailover promotes a replica that may lack the master's last writes. At most a bucket's
// capacity is lost.
func TestFault_SentinelFailover(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*proctest.Redis){
		"master killed": (*proctest.Redis).Kill,
		"master paused": (*proctest.Redis).Pause,
	} {
		t.Run(name, func(t *testing.T) {
			faulttest.RunParallel(t)
			sentinel := proctest.StartSentinel(t)
			url := "redis+sentinel://" + strings.Join(sentinel.Addrs, ",") + "/" + sentinel.MasterName
			s, client := dialURL(t, url, redisstore.Config{})
			tr := startTraffic(t, s, client, plainAndOthers())
			tr.WaitAnswers(150)
			master, replica := sentinel.Master(), sentinel.Replica()
			end(master)
			sentinel.WaitMaster(replica)
			tr.WaitAnswers(150)
			if name == "master paused" {
				master.Resume() // and learns that it is a replica
				tr.WaitAnswers(50)
			}
			tr.Stop()
			tr.CheckFailures()
			tr.CheckPrompt()
			tr.CheckBound(1)
		})
	}
}

// failoverTimeout is how long a replica tries CLUSTER FAILOVER: 5 s.
const failoverTimeout = 6 * time.Second

// TestFault_ClusterNodeLost proves that a planned failover loses nothing, while a lost master may lose writes.
func TestFault_ClusterNodeLost(t *testing.T) {
	faulttest.RunParallel(t)
	c := proctest.StartCluster(t, 3, 1)
	s, client := dialURL(t, "redis+cluster://"+strings.Join(c.Addrs, ","), redisstore.Config{})
	tr := startTraffic(t, s, client, plainAndOthers())
	tr.WaitAnswers(50)
	master := c.Owner(c.SlotOf("tb:plain"))
	replica, asked := c.Nodes[slices.Index(c.Nodes, master)+3], time.Time{}
	faulttest.Eventually(t, "the replica is master", func() error {
		if c.Owner(c.SlotOf("tb:plain")) != master {
			return nil
		}
		if time.Since(asked) > failoverTimeout { // on a slow machine, it has not started
			if _, err := replica.Do("CLUSTER", "FAILOVER"); err != nil {
				return err
			}
			asked = time.Now()
		}
		return errors.New("not yet")
	})
	tr.WaitAnswers(50)
	tr.Stop()
	undone(t, s)
	tr.CheckPrompt()
	tr.CheckBound(0)
	tr.CheckConserved()

	var takers []*faulttest.Taker
	for range 2 { // in all slots, and in several at once
		takers = append(takers, &faulttest.Taker{Charges: chargesOf("a", "b", "c", "d")}, &faulttest.Taker{Charges: chargesOf("d", "e", "f"), IDs: true},
			&faulttest.Taker{Charges: chargesOf("{plain}g")})
	}
	c.WaitReady()
	tr = startTraffic(t, s, client, takers)
	tr.WaitAnswers(100)
	lost := c.Owner(c.SlotOf("tb:{plain}g"))
	lost.Kill()
	c.WaitReady()
	tr.WaitAnswers(100)
	lost.Restart()
	c.WaitReady()
	tr.WaitAnswers(50)
	tr.Stop()
	undone(t, s)
	tr.CheckFailures()
	tr.CheckPrompt()
	tr.CheckBound(1)
}
