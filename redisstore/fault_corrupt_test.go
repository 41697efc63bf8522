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
	"github.com/metehq/mete/store"
)

// specimensOf returns limits of every algorithm that refill twenty tokens per period.
func specimensOf(per time.Duration) map[string]bucket.Limit {
	rate := bucket.Rate{Tokens: 20 * bucket.Token, Per: per}
	return map[string]bucket.Limit{
		"token bucket":   compiled(bucket.Spec{Capacity: 20 * bucket.Token, Rate: rate}),
		"leaky bucket":   compiled(bucket.Spec{Capacity: bucket.Token, Rate: rate, Queue: 5 * bucket.Token}),
		"fixed window":   compiled(bucket.Spec{Algorithm: bucket.AlgorithmStepped, Capacity: 20 * bucket.Token, Rate: rate}),
		"sliding window": compiled(bucket.Spec{Algorithm: bucket.AlgorithmSlidingWindow, Rate: rate}),
		"sliding log":    compiled(bucket.Spec{Algorithm: bucket.AlgorithmSlidingLog, Rate: rate}),
	}
}

func compiled(spec bucket.Spec) bucket.Limit {
	l, _, err := spec.Compile()
	if err != nil {
		panic(err)
	}
	return l
}

func zeros(n int) string { return strings.Repeat("\x00", n) }

// foreign are commands that write a value that is not a bucket.
var foreign = [][]string{
	{"RPUSH", "K", "1:1@1 20000+1/50", "1:2@2 20000+1/50"},
	{"HSET", "K", "spent", "1"},
	{"SADD", "K", "1"},
	{"SET", "K", ""},
	{"SET", "K", "garbage"},
	{"SET", "K", "1:"},
	{"SET", "K", "1:1"},
	{"SET", "K", "1:1@1"},
	{"SET", "K", "1:1@1 nonsense"},
	{"SET", "K", "1:1@1 20000+1/"},
	{"SET", "K", "1:1@1 z20000+1/50"},
	{"SET", "K", "1:@1 20000+1/50"},
	{"SET", "K", "1:-1@1 20000+1/50"},
	{"SET", "K", "1:1e3@1 20000+1/50"},
	{"SET", "K", "1: 1@1 20000+1/50"},
	{"SET", "K", " 1:1@1 20000+1/50"},
	{"SET", "K", "1:1@1 20000+1/50\n"},
	{"SET", "K", "1:1@1 20000+1/50\nx"},
	{"SET", "K", "1:1@1 w20000+20000/1000000"},
	{"SET", "K", "1:1+2@1 20000+1/50"},
	{"SET", "K", "1:1@1 l20000+20000/1000000"},
	{"SET", "K", "1:1@1 1+1/1\n1@1 2+1/1\n1@1 3+1/1\n1@1 4+1/1"},
	{"SET", "K", "1500/10@1700000000000000"}, // of earlier versions
	{"SET", "K", "3000+0~3600000000@1795258800000000"},
	{"SET", "K", "log sum=0000000001000 first=0000000000\n1795258800000000 0000000001000\n"},
	{"SET", "K", "2:1500@1700000000000000 20000+1/50"}, // of version 2 in the form of version 1
	{"SET", "K", "2:20000+1/50 " + zeros(15)},
	{"SET", "K", "2:20000+1/50 " + zeros(17)},
	{"SET", "K", "2:20000+1/50" + zeros(17)},
	{"SET", "K", "2:nonsense " + zeros(16)},
	{"SET", "K", "2:w20000+20000/1000000 " + zeros(16)},
	{"SET", "K", "2:20000+1/50 " + zeros(6) + "\xf0\xbf" + zeros(8)}, // -1
	{"SET", "K", "2:20000+1/50 " + zeros(6) + "\xe0\x3f" + zeros(8)}, // 0.5
	{"SET", "K", "2:20000+1/50 " + zeros(6) + "\xf8\x7f" + zeros(8)}, // not a number
	{"SET", "K", "2:20000+1/50 " + zeros(14) + "\xf0\x7f"},           // infinite
	{"SET", "K", "2:20000+1/50 " + zeros(14) + "\xe0\x3f"},
	{"SET", "K", "3:1500@1700000000000000 20000+1/50"}, // of later versions
	{"SET", "K", "10:1500@1700000000000000 20000+1/50"},
	{"SET", "K", "1:log sum="},
	{"SET", "K", "1:log sum=x first=0 lines=0 l20000+20000/1000000\n"},
	{"SET", "K", "1:log sum=0 first=0 lines=0 l20000+20000/1000000\n"},
	{"SET", "K", "1:log sum=1 first=0 lines=1 l20000+20000/1000000\nnonsense"},
	{"SET", "K", "1:log sum=1 first=0 lines=1 20000+1/50\n1795258800000000 0000000000001\n"},
	{"SET", "K", "1:log sum=1 first=1 lines=1 l20000+20000/1000000\n1795258800000000 0000000000001\n"},
	{"SET", "K", "1:log sum=1 first=0 lines=2 l20000+20000/1000000\n1795258800000000 0000000000001\n"},
	{"SET", "K", "\x00\xff\x00"},
}

// TestFault_SpoiledKeys proves that a key with an invalid value fails only its own takes until it is reset, and
// that nothing is spent.
func TestFault_SpoiledKeys(t *testing.T) {
	faulttest.RunParallel(t)
	r := proctest.StartRedis(t)
	s, client := dialURL(t, "redis://"+r.Addr, redisstore.Config{Timeout: faulttest.Patience, MaxInFlight: 2})
	tr := startTraffic(t, s, client, faulttest.WaitForever(plainAndOthers()))
	var takes sync.WaitGroup
	for name, l := range specimensOf(time.Second) {
		for i, command := range foreign {
			key := fmt.Sprint(name, i)
			args := strings.Split(strings.ReplaceAll(strings.Join(command, "|"), "K", "tb:"+key), "|")
			takes.Go(func() { spoil(t, s, r, key, l, args) })
		}
	}
	takes.Wait()
	tr.WaitAnswers(20)
	tr.Stop()
	tr.CheckNoFailures()
	tr.CheckBound(0)
	tr.CheckConserved()
}

// spoil writes an invalid value while the key is used.
func spoil(t *testing.T, s mete.Store, r *proctest.Redis, key string, l bucket.Limit, args []string) {
	charge := []store.Charge{{Key: key, Limit: l, Cost: bucket.Token}}
	two := append(charge[:1:1], slowCharges(key+"+")...)
	if _, err := r.Do(args...); err != nil {
		t.Error(err)
		return
	}
	for range 5 {
		for _, charges := range [][]store.Charge{charge, two} {
			snaps, allowed, err := s.Take(t.Context(), nil, charges, mete.Mode{})
			if err == nil || mete.Spent(err) != mete.NotSpent {
				t.Errorf("%q: take: %v, %v, %v; want an error that says not spent", args, snaps, allowed, err)
			}
		}
	}
	if found, err := r.Do("EXISTS", "tb:"+key+"+"); err != nil || found != "0" {
		t.Errorf("%q: a take that failed has charged another bucket (%v)", args, err)
	}
	if err := s.Reset(t.Context(), []string{key}); err != nil {
		t.Errorf("%q: reset: %v", args, err)
	}
	if _, allowed, err := s.Take(t.Context(), nil, charge, mete.Mode{}); err != nil || !allowed {
		t.Errorf("%q: take after a reset: %v, %v; want it allowed", args, allowed, err)
	}
}

// TestFault_SpoiledMemory proves that an invalid memory of a take fails only takes with its ID.
func TestFault_SpoiledMemory(t *testing.T) {
	faulttest.RunParallel(t)
	r := proctest.StartRedis(t)
	s, client := dialURL(t, "redis://"+r.Addr, redisstore.Config{Timeout: faulttest.Patience, MaxInFlight: 1})
	for _, value := range [][]string{{"RPUSH", "x"}, {"SET", "x"}, {"SET", "- 1 99999999999999999 garbage"}, {"SET", "1:- 1 99999999999999999 garbage"}, {"SET", "2:x"}, {"SET", ""}} {
		must(t, r, "FLUSHALL")
		charges, id := slowCharges("k"), mete.Mode{ID: "x"}
		if _, _, err := s.Take(t.Context(), nil, charges, id); err != nil {
			t.Fatal(err)
		}
		memory := must(t, r, "KEYS", "id:*")
		must(t, r, "DEL", memory)
		must(t, r, value[0], memory, value[1])
		tr := startTraffic(t, s, client, faulttest.WaitForever(plainAndOthers()[:4]))
		log := &store.Charge{Key: "log", Limit: specimensOf(time.Second)["sliding log"], Cost: bucket.Token}
		for range 20 {
			_, _, err := s.Take(t.Context(), nil, charges, id)
			_, _, _ = s.Take(t.Context(), nil, []store.Charge{*log}, mete.Mode{})
			if spoiled := value[1] != "" && !strings.HasPrefix(value[1], "1:"); spoiled && mete.Spent(err) != mete.NotSpent {
				t.Errorf("%q: a take by the ID of what is no memory: %v, want an error that says not spent", value, err)
			}
		}
		tr.WaitAnswers(20)
		tr.Stop()
		tr.CheckNoFailures()
		tr.CheckConserved()
	}
}
