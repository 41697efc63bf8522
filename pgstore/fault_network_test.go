// SPDX-License-Identifier: Apache-2.0

package pgstore_test

import (
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/faulttest"
	"github.com/metehq/mete/internal/proctest"
	"github.com/metehq/mete/pgstore"
)

// behindProxy opens a store that reaches a server only through a proxy.
func behindProxy(t *testing.T, config pgstore.Config) (*place, *proctest.Proxy) {
	t.Helper()
	s := proctest.StartPostgres(t)
	proxy := proctest.StartProxy(t, s.Addr)
	return at(t, s.URL(), behind(s.URL(), proxy.Addr), config), proxy
}

// TestFault_ReplyLost proves that a take with a lost reply is spent at most once, and only once under an ID.
func TestFault_ReplyLost(t *testing.T) {
	faulttest.RunParallel(t)
	p, proxy := behindProxy(t, pgstore.Config{Timeout: faulttest.Patience, SweepEvery: -1}) // no other calls
	charges := slowCharges("k", "l")
	charged := func() int64 {
		t.Helper()
		k, l := p.charged("k"), p.charged("l")
		if k != l {
			t.Errorf("%d takes are missing from one bucket, and %d from the other", k, l)
		}
		return k
	}
	if _, err := p.take(charges, mete.Mode{}); err != nil {
		t.Fatal(err)
	}
	const attempts = 8
	lost := 0
	for i := range attempts {
		mode := mete.Mode{}
		if i%2 == 1 {
			mode.ID = fmt.Sprint(i)
		}
		before := charged()
		proxy.CutBeforeReply(1)
		_, err := p.take(charges, mode)
		proxy.CutBeforeReply(0)
		spent := charged() - before
		if spent < 0 || spent > 1 || spent == 1 && err != nil && mete.Spent(err) == mete.NotSpent || spent == 0 && err == nil {
			t.Errorf("take with ID %q whose reply was cut: charged %d times, error %v, which says not spent: %t",
				mode.ID, spent, err, mete.Spent(err) == mete.NotSpent)
		}
		if err != nil {
			lost += int(spent) // else the reply to a greeting was cut
		} // or to a ping of the pool, after a second without use
		for range 2 {
			if _, err := p.take(charges, mode); err != nil {
				t.Fatal(err)
			}
			if spent++; mode.ID != "" {
				spent = 1
			}
			if got := charged() - before; got != spent {
				t.Errorf("take with ID %q, again: %d takes are missing, want %d", mode.ID, got, spent)
			}
		}
	}
	if lost == 0 {
		t.Errorf("no reply of %d was cut after its take: the run means nothing", attempts)
	}
}

func TestFault_RepliesLostUnderLoad(t *testing.T) {
	faulttest.RunParallel(t)
	p, proxy := behindProxy(t, pgstore.Config{})
	tr := startTraffic(t, p, plainAndOthers())
	for range 25 {
		tr.WaitAnswers(3)
		proxy.CutBeforeReply(1 + rand.IntN(3))
	}
	proxy.CutBeforeReply(0)
	tr.WaitAnswers(5)
	tr.Stop()
	tr.CheckFailures()
	tr.CheckPrompt()
	tr.CheckBound(0)
	tr.CheckConserved()
}

func TestFault_SlowNetwork(t *testing.T) {
	faulttest.RunParallel(t)
	p, proxy := behindProxy(t, pgstore.Config{})
	tr := startTraffic(t, p, plainAndOthers())
	tr.WaitAnswers(20)
	for _, delay := range []time.Duration{faulttest.Within / 2, 4 * faulttest.Within, 100 * faulttest.Within} {
		proxy.Delay(delay)
		tr.WaitCalls(6)
		proxy.Delay(0)
	}
	proxy.CutNow() // data in flight would block all later data
	tr.WaitAnswers(20)
	tr.Stop()
	tr.CheckFailures()
	tr.CheckPrompt()
	tr.CheckBound(0)
	tr.CheckConserved()
}

func TestFault_NetworkGone(t *testing.T) {
	faulttest.RunParallel(t)
	p, proxy := behindProxy(t, pgstore.Config{})
	tr := startTraffic(t, p, plainAndOthers())
	for _, cut := range []bool{false, true} {
		tr.WaitAnswers(20)
		proxy.Blackhole(true)
		if cut { // accepts connections, then stays silent
			proxy.CutNow()
		}
		tr.WaitCalls(20)
		proxy.Blackhole(false)
	}
	tr.WaitAnswers(20)
	tr.Stop()
	tr.CheckFailures()
	tr.CheckPrompt()
	tr.CheckBound(0)
	tr.CheckConserved()
}

// TestFault_Paused pauses a server. It answers nothing, and answers earlier calls late.
func TestFault_Paused(t *testing.T) {
	faulttest.RunParallel(t)
	s := proctest.StartPostgres(t)
	p := at(t, s.URL(), "", pgstore.Config{})
	tr := startTraffic(t, p, plainAndOthers())
	tr.WaitAnswers(20)
	s.Pause()
	tr.WaitCalls(20)
	s.Resume()
	tr.WaitAnswers(20)
	tr.Stop()
	tr.CheckFailures()
	tr.CheckPrompt()
	tr.CheckBound(0)
	tr.CheckConserved()
}

// TestFault_HoldRepliesLost loses answers to holds and settlements. Repeated calls charge and refund nothing.
func TestFault_HoldRepliesLost(t *testing.T) {
	faulttest.RunParallel(t)
	p, proxy := behindProxy(t, pgstore.Config{Timeout: faulttest.Patience, SweepEvery: -1, Now: func() bucket.Instant { return 1_000_000 }})
	faulttest.SettleThroughFaults(t, p.store, func() { proxy.CutBeforeReply(1 + rand.IntN(3)) })
}

// TestFault_CalendarHoldRepliesLost is TestFault_HoldRepliesLost with budgets of a day and a year, past several midnights.
func TestFault_CalendarHoldRepliesLost(t *testing.T) {
	faulttest.RunParallel(t)
	var clock atomic.Int64
	p, proxy := behindProxy(t, pgstore.Config{Timeout: faulttest.Patience, SweepEvery: -1, Now: func() bucket.Instant { return bucket.Instant(clock.Load()) }})
	faulttest.SettleCalendarsThroughFaults(t, p.store, &clock, func() { proxy.CutBeforeReply(1 + rand.IntN(3)) })
}

// TestFault_StreamRepliesLost loses answers to the steps of streams. Each stream is charged its usage once.
func TestFault_StreamRepliesLost(t *testing.T) {
	faulttest.RunParallel(t)
	now := func() bucket.Instant { return 1_000_000 }
	p, proxy := behindProxy(t, pgstore.Config{Timeout: faulttest.Patience, SweepEvery: -1, Now: now})
	faulttest.ChargeStreamsThroughFaults(t, p.store, now, func() func() {
		proxy.CutBeforeReply(1)
		return func() { proxy.CutBeforeReply(0) }
	})
}
