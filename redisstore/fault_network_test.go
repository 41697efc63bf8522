// SPDX-License-Identifier: Apache-2.0

package redisstore_test

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
	"github.com/metehq/mete/redisstore"
	"github.com/redis/rueidis"
)

// behindProxy opens a store that reaches a server only through a proxy.
func behindProxy(t *testing.T, config redisstore.Config) (s *redisstore.Store, direct rueidis.Client, proxy *proctest.Proxy) {
	t.Helper()
	r := proctest.StartRedis(t)
	proxy = proctest.StartProxy(t, r.Addr)
	s, _ = dialURL(t, "redis://"+proxy.Addr, config)
	_, direct = dialURL(t, "redis://"+r.Addr, redisstore.Config{})
	return s, direct, proxy
}

func TestFault_ReplyLost(t *testing.T) {
	faulttest.RunParallel(t)
	s, direct, proxy := behindProxy(t, redisstore.Config{Timeout: faulttest.Patience})
	charges := slowCharges("k", "l")
	both := func() int64 {
		t.Helper()
		k, l := charged(t, direct, "k"), charged(t, direct, "l")
		if k != l {
			t.Errorf("%d takes are missing from one bucket, and %d from the other", k, l)
		}
		return k
	}
	take := func(id string) error {
		_, _, err := s.Take(t.Context(), nil, charges, mete.Mode{ID: id})
		return err
	}
	if err := take(""); err != nil {
		t.Fatal(err)
	}
	const attempts = 10
	lost := 0
	for i := range attempts {
		id := ""
		if i%2 == 1 {
			id = fmt.Sprint(i)
		}
		before := both()
		proxy.CutBeforeReply(1)
		err := take(id)
		if proxy.CutBeforeReply(0); err != nil && mete.Spent(err) != mete.MaybeSpent {
			t.Fatalf("take with ID %q whose reply was cut: %v, want an error that says maybe spent", id, err)
		}
		spent := both() - before
		if spent < 0 || spent > 1 || spent == 0 && err == nil {
			t.Errorf("take with ID %q whose reply was cut: charged %d times, error %v", id, spent, err)
		}
		if err != nil {
			lost += int(spent) // else the reply to a greeting was cut
		} // or to the client's ping
		for range 3 {
			if err := take(id); err != nil {
				t.Fatal(err)
			}
			if spent++; id != "" {
				spent = 1
			}
			if got := both() - before; got != spent {
				t.Errorf("take with ID %q, again: %d takes are missing, want %d", id, got, spent)
			}
		}
	}
	if lost == 0 {
		t.Errorf("no reply of %d was cut after its take: the run means nothing", attempts)
	}
}

func TestFault_RepliesLostUnderLoad(t *testing.T) {
	faulttest.RunParallel(t)
	s, direct, proxy := behindProxy(t, redisstore.Config{})
	tr := startTraffic(t, s, direct, plainAndOthers())
	for range 25 {
		tr.WaitAnswers(5)
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
	s, direct, proxy := behindProxy(t, redisstore.Config{})
	tr := startTraffic(t, s, direct, plainAndOthers())
	tr.WaitAnswers(50)
	for _, delay := range []time.Duration{faulttest.Within / 2, 4 * faulttest.Within, 100 * faulttest.Within} {
		proxy.Delay(delay)
		tr.WaitCalls(8)
		proxy.Delay(0)
	}
	proxy.CutNow() // data in flight would block all later data
	tr.WaitAnswers(50)
	tr.Stop()
	tr.CheckFailures()
	tr.CheckPrompt()
	tr.CheckBound(0)
	tr.CheckConserved()
}

func TestFault_NetworkGone(t *testing.T) {
	faulttest.RunParallel(t)
	s, direct, proxy := behindProxy(t, redisstore.Config{})
	tr := startTraffic(t, s, direct, plainAndOthers())
	for _, cut := range []bool{false, true} {
		tr.WaitAnswers(50)
		proxy.Blackhole(true)
		if cut { // accepts connections, then stays silent
			proxy.CutNow()
		}
		tr.WaitCalls(20)
		proxy.Blackhole(false)
	}
	tr.WaitAnswers(50)
	tr.Stop()
	tr.CheckFailures()
	tr.CheckPrompt()
	tr.CheckBound(0)
	tr.CheckConserved()
}

// TestFault_HoldRepliesLost loses answers to holds and settlements. Repeated calls charge and refund nothing.
func TestFault_HoldRepliesLost(t *testing.T) {
	faulttest.RunParallel(t)
	s, _, proxy := behindProxy(t, redisstore.Config{Timeout: faulttest.Patience, Now: func() bucket.Instant { return 1_000_000 }})
	faulttest.SettleThroughFaults(t, s, func() { proxy.CutBeforeReply(1 + rand.IntN(3)) })
}

// TestFault_CalendarHoldRepliesLost is TestFault_HoldRepliesLost with budgets of a day and a year, past several midnights.
func TestFault_CalendarHoldRepliesLost(t *testing.T) {
	faulttest.RunParallel(t)
	var clock atomic.Int64
	s, _, proxy := behindProxy(t, redisstore.Config{Timeout: faulttest.Patience, Now: func() bucket.Instant { return bucket.Instant(clock.Load()) }})
	faulttest.SettleCalendarsThroughFaults(t, s, &clock, func() { proxy.CutBeforeReply(1 + rand.IntN(3)) })
}

// TestFault_StreamRepliesLost loses answers to the steps of streams. Each stream is charged its usage once.
func TestFault_StreamRepliesLost(t *testing.T) {
	faulttest.RunParallel(t)
	now := func() bucket.Instant { return 1_000_000 }
	s, _, proxy := behindProxy(t, redisstore.Config{Timeout: faulttest.Patience, Now: now})
	faulttest.ChargeStreamsThroughFaults(t, s, now, func() func() {
		proxy.CutBeforeReply(1)
		return func() { proxy.CutBeforeReply(0) }
	})
}
