// SPDX-License-Identifier: Apache-2.0

package redisstore_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/faulttest"
	"github.com/metehq/mete/internal/proctest"
	"github.com/metehq/mete/redisstore"
)

// specimensOf are limits of every algorithm, which bring twenty tokens in a time.
func specimensOf(per time.Duration) map[string]bucket.Limit {
	rate := bucket.Rate{Tokens: 20 * bucket.Token, Per: per}
	return map[string]bucket.Limit{
		"token bucket":   compiled(bucket.Spec{Capacity: 20 * bucket.Token, Rate: rate}),
		"leaky bucket":   compiled(bucket.Spec{Capacity: bucket.Token, Rate: rate, Queue: 5 * bucket.Token}),
		"fixed window":   compiled(bucket.Spec{Algorithm: bucket.Stepped, Capacity: 20 * bucket.Token, Rate: rate}),
		"sliding window": compiled(bucket.Spec{Algorithm: bucket.SlidingWindow, Rate: rate}),
		"sliding log":    compiled(bucket.Spec{Algorithm: bucket.SlidingLog, Rate: rate}),
	}
}

func compiled(spec bucket.Spec) bucket.Limit {
	l, _, err := spec.Compile()
	if err != nil {
		panic(err)
	}
	return l
}

// foreign are commands that put under a key what no bucket is.
var foreign = [][]string{
	{"RPUSH", "K", "1/1@1", "2/1@2"},
	{"HSET", "K", "spent", "1"},
	{"SADD", "K", "1"},
	{"SET", "K", ""},
	{"SET", "K", "garbage"},
	{"SET", "K", "1/1"},
	{"SET", "K", "1/1@"},
	{"SET", "K", "-1/1@1"},
	{"SET", "K", "1e3/1@1"},
	{"SET", "K", " 1/1@1"},
	{"SET", "K", "1/1@1\n"},
	{"SET", "K", "1+2~3"},
	{"SET", "K", "log sum="},
	{"SET", "K", "log sum=x first=0\n"},
	{"SET", "K", "log sum=0000000000001 first=0000000000\nnonsense"},
	{"SET", "K", "\x00\xff\x00"},
}

// A key that holds what no bucket is spoils its own takes alone, which say that
// nothing was spent, until it is reset.
func TestFault_SpoiledKeys(t *testing.T) {
	faulttest.Alone(t)
	r := proctest.StartRedis(t)
	s, client := dialURL(t, "redis://"+r.Addr, redisstore.Config{Timeout: faulttest.Patience, MaxInFlight: 2})
	tr := startTraffic(t, s, client, faulttest.Patiently(plainAndOthers()))
	var takes sync.WaitGroup
	for name, l := range specimensOf(time.Second) {
		for i, command := range foreign {
			key := fmt.Sprint(name, i)
			args := strings.Split(strings.ReplaceAll(strings.Join(command, "|"), "K", "tb:"+key), "|")
			takes.Go(func() { spoil(t, s, r, key, l, args) })
		}
	}
	takes.Wait()
	tr.GoesOn(20)
	tr.Stop()
	tr.Unharmed()
	tr.Bounded(0)
	tr.Conserved()
}

// spoil has a key hold something foreign, while it is taken from.
func spoil(t *testing.T, s mete.Store, r *proctest.Redis, key string, l bucket.Limit, args []string) {
	charge := []mete.Charge{{Key: key, Limit: l, Cost: bucket.Token}}
	two := append(charge[:1:1], slowCharges(key+"+")...)
	if _, err := r.Do(args...); err != nil {
		t.Error(err)
		return
	}
	spent := false
	for range 5 {
		for _, charges := range [][]mete.Charge{charge, two} {
			snaps, allowed, err := s.Take(t.Context(), nil, charges, mete.Mode{})
			switch {
			case err != nil && mete.Spent(err) == mete.NotSpent:
			case err == nil && (args[0] != "SET" || args[2] == ""): // MGET takes it for nothing, as a full bucket
				spent = spent || len(charges) == 2
			default:
				t.Errorf("%q: take: %v, %v, %v; want an error that says not spent", args, snaps, allowed, err)
			}
		}
	}
	if found, err := r.Do("EXISTS", "tb:"+key+"+"); err != nil || found != "0" && !spent {
		t.Errorf("%q: a take that failed has charged another bucket (%v)", args, err)
	}
	if err := s.Reset(t.Context(), []string{key}); err != nil {
		t.Errorf("%q: reset: %v", args, err)
	}
	if _, allowed, err := s.Take(t.Context(), nil, charge, mete.Mode{}); err != nil || !allowed {
		t.Errorf("%q: take after a reset: %v, %v; want it allowed", args, allowed, err)
	}
}

// What is remembered of takes may be spoiled, too: then that of its ID fails.
func TestFault_SpoiledMemory(t *testing.T) {
	faulttest.Alone(t)
	r := proctest.StartRedis(t)
	s, client := dialURL(t, "redis://"+r.Addr, redisstore.Config{Timeout: faulttest.Patience, MaxInFlight: 1})
	for _, value := range [][]string{{"RPUSH", "x"}, {"SET", "x"}, {"SET", "- 1 99999999999999999 garbage"}, {"SET", ""}} {
		must(t, r, "FLUSHALL")
		charges, id := slowCharges("k"), mete.Mode{ID: "x"}
		if _, _, err := s.Take(t.Context(), nil, charges, id); err != nil {
			t.Fatal(err)
		}
		memory := must(t, r, "KEYS", "id:*")
		must(t, r, "DEL", memory)
		must(t, r, value[0], memory, value[1])
		tr := startTraffic(t, s, client, faulttest.Patiently(plainAndOthers()[:4]))
		log := &mete.Charge{Key: "log", Limit: specimensOf(time.Second)["sliding log"], Cost: bucket.Token}
		for range 20 {
			_, _, err := s.Take(t.Context(), nil, charges, id)
			_, _, _ = s.Take(t.Context(), nil, []mete.Charge{*log}, mete.Mode{})
			if err == nil && value[0] == "RPUSH" {
				t.Errorf("%q: a take was remembered in a list", value)
			}
			pass(time.Millisecond)
		}
		tr.Stop()
		tr.Unharmed()
		tr.Conserved()
	}
}
