// SPDX-License-Identifier: Apache-2.0

package memstore

import (
	"strconv"
	"testing"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/store"
)

// A client that creates a limit per call gets exact answers, bounded memory, and reclaimed numbers: a regular
// limit gets a slot again.
func TestLimits_MadeUpOnesAreBounded(t *testing.T) {
	now := bucket.Instant(1_700_000_000_000_000)
	s := newStore(t, Config{MaxKeys: 1000, Now: func() bucket.Instant { return now }})
	made := func(i int) bucket.Limit { return limitOf(t, bucket.Token+bucket.Tokens(i), bucket.Token, time.Second) }
	for i := range maxNumbers + 5000 {
		l := made(i)
		key := strconv.Itoa(i % 500)
		if got := s.take1(t, key, l, bucket.Token); !got.Allowed || got.Remaining() != bucket.Tokens(i) {
			t.Fatalf("limit %d: allowed %v, %v remain", i, got.Allowed, got.Remaining())
		}
		now += 2_000 // no key is asked again before its bucket is full
		if i%500 == 499 {
			now += 2_000_000
		}
	}
	if got := s.Stats().Keys; got > 1000 {
		t.Errorf("%d buckets are kept of 500 keys", got)
	}
	if got := len(s.limits.byName); got > maxNumbers {
		t.Errorf("%d limits have numbers, at most %d can", got, maxNumbers)
	}
	// Each take of a limit without a number executes a step.
	i := maxNumbers + 5000
	for ; s.limits.exhausted.Load() || len(s.limits.free) == 0; i++ {
		if i > maxNumbers+10_000 {
			t.Fatal("no numbers are taken back")
		}
		s.take1(t, strconv.Itoa(i%500), made(i), bucket.Token)
		now += 2_000_000
	}
	honest := limitOf(t, 77*bucket.Token, 7*bucket.Token, time.Second)
	s.take1(t, "honest", honest, bucket.Token)
	if _, word := s.find(s.hasher.hash("honest")); word&hasSideRow != 0 {
		t.Error("a limit got no number, though some were taken back")
	}
	checkInvariants(t, s)
}

// Numbers in slots, and numbers that were just looked up, stay while many goroutines create limits.
func TestLimits_NumbersInUseStay(t *testing.T) {
	s := newStore(t, Config{MaxKeys: 5000})
	var kept []bucket.Limit
	for i := range 100 {
		l := limitOf(t, 5*bucket.Token+bucket.Tokens(i), 1, time.Hour)
		kept = append(kept, l)
		s.take1(t, "kept"+strconv.Itoa(i), l, 2*bucket.Token)
	}
	done := make(chan struct{})
	for g := range 4 {
		go func() {
			defer func() { done <- struct{}{} }()
			for i := range 400 {
				// As if all numbers were used: each lookup of a new limit executes a step.
				l := limitOf(t, bucket.Token+bucket.Tokens(1000*g+i), bucket.Token, time.Second)
				if _, _, err := s.Take(t.Context(), nil, []store.Charge{{Key: strconv.Itoa(i), Limit: l, Cost: 1}}, mete.Mode{UpTo: true}); err != nil {
					t.Error(err)
				}
				for range 3 {
					s.limits.exhausted.Store(true)
					s.reclaim()
				}
			}
		}()
	}
	for range 4 {
		<-done
	}
	if len(s.limits.free) == 0 && s.limits.next > 1000 {
		t.Error("no round came to its end")
	}
	for i, l := range kept {
		key := "kept" + strconv.Itoa(i)
		if got := s.take1(t, key, l, 0); got.Remaining() != 3*bucket.Token+bucket.Tokens(i) {
			t.Errorf("key %d holds %v", i, got.Remaining())
		}
		if sl, _ := s.find(s.hasher.hash(key)); s.entry(sl.tag).limit != l {
			t.Errorf("key %d: its slot names %v, want %v", i, s.entry(sl.tag).limit, l)
		}
	}
	checkInvariants(t, s)
}

// At the bound of overflow buckets, a limit without one is denied, and limits with one continue.
func TestOverflow_IsBounded(t *testing.T) {
	now := bucket.Instant(1_700_000_000_000_000)
	s := newStore(t, Config{MaxKeys: 1, Now: func() bucket.Instant { return now }})
	l, other := limitOf(t, 5*bucket.Token, 1, time.Second), limitOf(t, 6*bucket.Token, 1, time.Second)
	s.take1(t, "k", l, bucket.Token)
	s.take1(t, "spills", l, bucket.Token)
	s.used.Add(maxOverflow) // as if there were so many
	for _, cost := range []bucket.Tokens{0, bucket.Token} {
		if got := s.take1(t, "another", other, cost); got.Allowed || got.RetryAfter <= 0 {
			t.Errorf("%v of a limit without an overflow bucket: allowed %v, retry after %v", cost, got.Allowed, got.RetryAfter)
		}
	}
	if got := s.take1(t, "spills too", l, bucket.Token); !got.Allowed || got.Remaining() != 3*bucket.Token {
		t.Errorf("of an overflow bucket that is there: allowed %v, %v remain", got.Allowed, got.Remaining())
	}
	s.used.Add(-maxOverflow)
	if !s.take1(t, "another", other, bucket.Token).Allowed {
		t.Error("denied though there is room")
	}
	checkInvariants(t, s)
}
