// SPDX-License-Identifier: Apache-2.0

package redisstore_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/proctest"
	"github.com/metehq/mete/redisstore"
)

// behindProxy opens a store that reaches a server through a proxy only.
func behindProxy(t *testing.T, config redisstore.Config) (*redisstore.Store, *traffic, *proctest.Proxy) {
	t.Helper()
	r := proctest.StartRedis(t)
	proxy := proctest.StartProxy(t, r.Addr)
	s, _ := dialURL(t, "redis://"+proxy.Addr, config)
	_, direct := dialURL(t, "redis://"+r.Addr, redisstore.Config{})
	return s, startTraffic(t, s, direct, nil), proxy
}

func TestFault_ReplyLost(t *testing.T) {
	alone(t)
	s, tr, proxy := behindProxy(t, redisstore.Config{})
	charges := slowCharges("k", "l")
	charged := func() int64 {
		t.Helper()
		k, l := tr.charged("k"), tr.charged("l")
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
		before := charged()
		proxy.CutBeforeReply(1)
		err := take(id)
		if proxy.CutBeforeReply(0); err == nil || mete.Spent(err) != mete.MaybeSpent {
			t.Fatalf("take with ID %q whose reply was cut: %v, want an error that says maybe spent", id, err)
		}
		spent := charged() - before
		if spent < 0 || spent > 1 {
			t.Errorf("take with ID %q whose reply was cut: charged %d times", id, spent)
		}
		lost += int(spent) // else it was the reply to a greeting that was cut
		for range 3 {
			if err := take(id); err != nil {
				t.Fatal(err)
			}
			if spent++; id != "" {
				spent = 1
			}
			if got := charged() - before; got != spent {
				t.Errorf("take with ID %q, again: %d takes are missing, want %d", id, got, spent)
			}
		}
	}
	if lost == 0 {
		t.Errorf("no reply of %d was cut after its take: the run means nothing", attempts)
	}
}

// charged is how many takes are missing from a bucket, with what has come back
// since counted in.
func (tr *traffic) charged(key string) int64 {
	tr.t.Helper()
	s := tr.state(key)
	unit := int64(bucket.Token) * s.Unit
	return (s.Spent + unit - 1) / unit
}

func TestFault_RepliesLostUnderLoad(t *testing.T) {
	alone(t)
	s, idle, proxy := behindProxy(t, redisstore.Config{})
	tr := startTraffic(t, s, idle.client, plainAndOthers())
	for range 25 {
		tr.goesOn(5)
		proxy.CutBeforeReply(1 + rand.IntN(3))
	}
	proxy.CutBeforeReply(0)
	tr.goesOn(5)
	tr.stop()
	tr.harmed()
	tr.prompt()
	tr.bounded(0)
	tr.conserved()
}

func TestFault_SlowNetwork(t *testing.T) {
	alone(t)
	s, idle, proxy := behindProxy(t, redisstore.Config{})
	tr := startTraffic(t, s, idle.client, plainAndOthers())
	tr.goesOn(50)
	for _, delay := range []time.Duration{within / 2, 4 * within, 100 * within} {
		proxy.Delay(delay)
		pass(400 * time.Millisecond)
		proxy.Delay(0)
	}
	proxy.CutNow() // what is still on its way would keep all that follows
	tr.goesOn(50)
	tr.stop()
	tr.harmed()
	tr.prompt()
	tr.bounded(0)
	tr.conserved()
}

func TestFault_NetworkGone(t *testing.T) {
	alone(t)
	s, idle, proxy := behindProxy(t, redisstore.Config{})
	tr := startTraffic(t, s, idle.client, plainAndOthers())
	for _, cut := range []bool{false, true} {
		tr.goesOn(50)
		proxy.Blackhole(true)
		if cut { // new connections are taken, and then nothing
			proxy.CutNow()
		}
		pass(time.Second)
		proxy.Blackhole(false)
	}
	tr.goesOn(50)
	tr.stop()
	tr.harmed()
	tr.prompt()
	tr.bounded(0)
	tr.conserved()
}
