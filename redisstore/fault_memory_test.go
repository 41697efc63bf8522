// SPDX-License-Identifier: Apache-2.0

package redisstore_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
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
	"github.com/metehq/mete/storetest"
)

// busy takes, refunds, and takes by ID from buckets of every algorithm.
func busy(t *testing.T, s *redisstore.Store, ids bool) {
	var all sync.WaitGroup
	for name, l := range specimensOf(time.Second) {
		all.Go(func() {
			for i := range 200 {
				mode := mete.Mode{}
				if ids && i%3 == 0 {
					mode.ID = fmt.Sprint(name, i/6)
				}
				if i%5 == 0 {
					mode.MaxWait = 100 * time.Millisecond
				}
				charges := []store.Charge{
					{Key: fmt.Sprint(name, rand.IntN(10)), Limit: l, Cost: bucket.Tokens(1 + rand.Int64N(3000)), Leased: i%2 == 0},
					{Key: name + " of all", Limit: l, Cost: bucket.Token, Leased: true},
				}
				if _, _, err := s.Take(t.Context(), nil, charges[:1+i%2], mode); err != nil {
					t.Errorf("%s: take: %v", name, err)
				}
				if i%4 == 0 {
					if err := s.Refund(t.Context(), storetest.Refunds(charges[:1]...), ""); err != nil {
						t.Errorf("%s: refund: %v", name, err)
					}
				}
			}
		})
	}
	all.Wait()
}

// TestFault_NoKeyForEver proves that every key expires.
func TestFault_NoKeyForEver(t *testing.T) {
	faulttest.RunParallel(t)
	r := proctest.StartRedis(t)
	s, _ := dialURL(t, "redis://"+r.Addr, redisstore.Config{Timeout: faulttest.Patience})
	busy(t, s, true)
	keys := strings.Split(must(t, r, "KEYS", "*"), "\n")
	if len(keys) < 20 {
		t.Errorf("%d keys: the run is too short to mean anything", len(keys))
	}
	for _, key := range keys {
		ttl, err := strconv.Atoi(must(t, r, "PTTL", key))
		if err != nil || ttl == -1 || ttl > int(store.RetryHorizon.Milliseconds()) {
			t.Errorf("key %q lives for %d ms, %v: want a time, and no more than %v", key, ttl, err, store.RetryHorizon)
		}
	}
}

// TestFault_MemoryComesBack proves that Redis is empty soon after traffic stops.
func TestFault_MemoryComesBack(t *testing.T) {
	faulttest.RunParallel(t)
	r := proctest.StartRedis(t)
	s, _ := dialURL(t, "redis://"+r.Addr, redisstore.Config{Timeout: faulttest.Patience})
	busy(t, s, false)
	if err := s.Close(); err != nil { // returns leases
		t.Error(err)
	}
	faulttest.Eventually(t, "there are no keys", func() error {
		if n := must(t, r, "DBSIZE"); n != "0" {
			return errors.New(n + " keys are there")
		}
		return nil
	})
	if stats := must(t, r, "INFO", "stats"); strings.Contains(stats, "expired_keys:0\r") {
		t.Errorf("no key has expired: the run is too short to mean anything\n%s", stats)
	}
}

// moment is how much longer a key may live than its bucket needs.
const moment = 2*time.Second + 100*time.Millisecond

// TestFault_KeysLiveUntilFull proves that a key lives until its bucket is full. An earlier expiry would fill the
// bucket.
func TestFault_KeysLiveUntilFull(t *testing.T) {
	faulttest.RunParallel(t)
	r := proctest.StartRedis(t)
	s, _ := dialURL(t, "redis://"+r.Addr, redisstore.Config{Timeout: faulttest.Patience})
	for name, l := range specimensOf(time.Second) {
		for i := range 30 {
			key := fmt.Sprint(name, i)
			c := []store.Charge{{Key: key, Limit: l, Cost: bucket.Tokens(1 + rand.Int64N(1000))}}
			began := time.Now()
			snaps, allowed, err := s.Take(t.Context(), nil, c, mete.Mode{})
			ended := time.Now()
			if err != nil || !allowed {
				t.Fatalf("%s: %v, %v", key, allowed, err)
			}
			full := snaps[0].FullAfter()
			v := must(t, r, "EVAL", "local t = redis.call('TIME') return {t[1], t[2], redis.call('PTTL', KEYS[1])}", "1", "tb:"+key)
			var sec, us, ttl int64
			if _, err := fmt.Sscan(v, &sec, &us, &ttl); err != nil {
				t.Fatal(err)
			}
			const gone = -2
			until, early := time.Unix(sec, us*1000+ttl*1e6), began.Add(full-time.Millisecond)
			if ttl == gone && !time.Unix(sec, us*1000).Before(early) {
				continue // it has expired already
			}
			if late := ended.Add(full + moment); ttl < 0 || until.Before(early) || until.After(late) {
				t.Errorf("%s: expires %v after the take, which took %v; want %v", key, until.Sub(began), ended.Sub(began), full)
			}
		}
	}
}

// TestFault_DeniedWritesNothing proves that denied takes of all kinds write nothing (G4).
func TestFault_DeniedWritesNothing(t *testing.T) {
	faulttest.RunParallel(t)
	r := proctest.StartRedis(t)
	s, _ := dialURL(t, "redis://"+r.Addr, redisstore.Config{Timeout: faulttest.Patience})
	var charges []store.Charge
	for name, l := range specimensOf(1000 * time.Hour) {
		c := store.Charge{Key: name, Limit: l, Cost: bucket.Token, Leased: true}
		for { // until less than a token is left
			_, allowed, err := s.Take(t.Context(), nil, []store.Charge{c}, mete.Mode{})
			if err != nil {
				t.Fatal(err)
			}
			if !allowed {
				break
			}
		}
		c.Cost = l.Capacity()
		charges = append(charges, c)
	}
	must(t, r, "CONFIG", "RESETSTAT")
	denied := 0
	for _, c := range charges {
		for _, mode := range []mete.Mode{{}, {ID: "x"}, {MaxWait: time.Millisecond}, {UpTo: false, DryRun: true}, {DryRun: true, ID: "x"}} {
			two := append(slowCharges("full"), c)
			for _, charges := range [][]store.Charge{{c}, two} {
				if _, allowed, err := s.Take(t.Context(), nil, charges, mode); err != nil || allowed {
					t.Errorf("take of %q in mode %+v: %v, %v; want it denied", c.Key, mode, allowed, err)
				}
				denied++
			}
		}
	}
	stats := must(t, r, "INFO", "commandstats")
	for line := range strings.Lines(stats) {
		command, _, _ := strings.Cut(strings.TrimPrefix(line, "cmdstat_"), ":")
		switch command {
		case "evalsha", "eval", "time", "get", "mget", "getrange", "strlen", "config|resetstat", "config", "info", "ping", "# Commandstats\r\n": // a client pings its connections at intervals
		default:
			t.Errorf("%d denied takes and no other: %q", denied, line)
		}
	}
}
