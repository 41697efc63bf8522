// SPDX-License-Identifier: Apache-2.0

package redisstore_test

import (
	"fmt"
	"math"
	"sync/atomic"
	"testing"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/faulttest"
	"github.com/metehq/mete/internal/proctest"
	"github.com/metehq/mete/redisstore"
	"github.com/metehq/mete/store"
)

// TestFault_PartsWithoutANode proves that takes from several slots are all or nothing while a node does not
// answer or loses connections. Earlier charges are refunded exactly once, with retries.
func TestFault_PartsWithoutANode(t *testing.T) {
	faulttest.RunParallel(t)
	c := proctest.StartCluster(t, 3, 0)
	s, client := dialURL(t, "redis+cluster://"+c.Addrs[0], redisstore.Config{})
	var takers []*faulttest.Taker
	for range 2 {
		takers = append(takers,
			&faulttest.Taker{Charges: partCharges("a")}, &faulttest.Taker{Charges: partCharges("d")},
			&faulttest.Taker{Charges: partCharges("a", "b", "c", "d")}, &faulttest.Taker{Charges: partCharges("c", "d", "e")},
			&faulttest.Taker{Charges: partCharges("b", "c", "f"), IDs: true}, &faulttest.Taker{Charges: partCharges("e", "f", "g"), IDs: true})
	}
	nodes := map[*proctest.Redis]bool{}
	for _, k := range []string{"a", "b", "c", "d", "e", "f", "g"} {
		nodes[c.Owner(c.SlotOf("tb:"+k))] = true
	}
	if len(nodes) != 3 {
		t.Fatalf("the keys are on %d nodes, want 3", len(nodes))
	}
	tr, halt := startTraffic(t, s, client, takers), time.Duration(math.MaxInt64)
	for _, node := range c.Nodes {
		tr.WaitAnswers(20)
		node.Pause()
		paused := time.Now()
		tr.WaitCalls(14)
		halt = min(halt, time.Since(paused))
		node.Resume()
		tr.WaitAnswers(20)
		must(t, node, "CLIENT", "KILL", "TYPE", "normal", "SKIPME", "no")
	}
	tr.WaitAnswers(20)
	tr.Stop()
	undone(t, s)
	tr.CheckFailures()
	tr.CheckPrompt()
	slow := map[bool]int{} // by whether there were several parts
	for _, k := range takers {
		for _, c := range k.Calls {
			if c.Ended.Sub(c.Began)-(c.Within-faulttest.Within) > halt-slack {
				slow[len(k.Charges) > 1]++
			}
		}
	}
	// Each of two takers per kind waits for a node at least twice, unless the machine stalls.
	if slow[true] >= 4 && slow[false] == 0 {
		t.Errorf("%d takes of several buckets took as long as a node did not answer, want %v", slow[true], faulttest.Within)
	}
	tr.CheckBound(0)
	tr.CheckConserved()
}

// TestFault_DeniedPartsAreFree proves that a take that one slot denies does not change other slots (G4). A log
// must keep its oldest entry, too.
func TestFault_DeniedPartsAreFree(t *testing.T) {
	faulttest.RunParallel(t)
	c := proctest.StartCluster(t, 3, 0)
	var now atomic.Int64
	now.Store(1_700_000_000_000_000)
	s, _ := dialURL(t, "redis+cluster://"+c.Addrs[0], redisstore.Config{Timeout: faulttest.Patience, Now: func() bucket.Instant { return bucket.Instant(now.Load()) }})
	for name, l := range specimensOf(time.Minute) {
		other := 0 // in a later slot
		for c.SlotOf(fmt.Sprint("tb:~", other)) <= c.SlotOf("tb:"+name) {
			other++
		}
		charges := []store.Charge{{Key: name, Limit: l, Cost: bucket.Token}, {Key: fmt.Sprint("~", other), Limit: slowLimit}}
		take := func(cost bucket.Tokens, mode mete.Mode) (bucket.Snapshot, bool) {
			t.Helper()
			charges[1].Cost = cost
			snaps, allowed, err := s.Take(t.Context(), nil, charges, mode)
			if err != nil {
				t.Fatal(err)
			}
			return snaps[0], allowed
		}
		now.Add(60e6)
		if _, allowed := take(0, mete.Mode{}); !allowed {
			t.Fatalf("%s: the first take was denied", name)
		}
		now.Add(1e6)
		want, _ := take(0, mete.Mode{DryRun: true})
		if _, allowed := take(slowLimit.Capacity()+1, mete.Mode{}); allowed {
			t.Errorf("%s: the other bucket admitted more than it can hold", name)
		}
		if got, _ := take(0, mete.Mode{DryRun: true}); got != want {
			t.Errorf("%s: after a take that was denied %+v, want %+v", name, got, want)
		}
	}
}

// TestFault_PartsAreChargedOnceByID takes by ID from two slots. One of them answers late. The take is undone in
// both, and a retry is charged exactly once.
func TestFault_PartsAreChargedOnceByID(t *testing.T) {
	faulttest.RunParallel(t)
	c := proctest.StartCluster(t, 3, 0)
	s, _ := dialURL(t, "redis+cluster://"+c.Addrs[0], redisstore.Config{Timeout: 300 * time.Millisecond})
	a, b := twoNodes(c)
	charges := slowCharges(a, b)
	faulttest.Eventually(t, "all nodes answer", func() error {
		_, _, err := s.Take(t.Context(), nil, charges, mete.Mode{DryRun: true})
		return err
	})
	for i := range 4 {
		id := mete.Mode{ID: fmt.Sprint("take", i)}
		c.Nodes[2].Pause()
		if _, _, err := s.Take(t.Context(), nil, charges, id); err == nil || mete.Spent(err) != mete.MaybeSpent {
			t.Errorf("take %d: %v, want an error that says maybe spent", i, err)
		}
		c.Nodes[2].Resume()
		if i%2 == 0 {
			undone(t, s)
		}
		faulttest.Eventually(t, "it is answered", func() error {
			_, allowed, err := s.Take(t.Context(), nil, charges, id)
			if err == nil && !allowed {
				t.Error("it was denied")
			}
			return err
		})
		undone(t, s)
		for _, key := range []string{a, b} {
			if got, want := missingOf(t, s, key), bucket.Tokens(i+1)*bucket.Token; got != want {
				t.Errorf("take %d: %v are missing of %s, want %v", i, got, key, want)
			}
		}
	}
}
