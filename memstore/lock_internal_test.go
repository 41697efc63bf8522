// SPDX-License-Identifier: Apache-2.0

package memstore

import (
	"math"
	"testing"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/store"
)

func limitOf(t testing.TB, capacity, tokens bucket.Tokens, per time.Duration) bucket.Limit {
	t.Helper()
	l, err := bucket.NewLimit(capacity, bucket.Rate{Tokens: tokens, Per: per})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func newStore(t testing.TB, c Config) *Store {
	t.Helper()
	s, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *Store) take1(t testing.TB, key string, l bucket.Limit, cost bucket.Tokens) bucket.Snapshot {
	t.Helper()
	snaps, _, err := s.Take(t.Context(), nil, []store.Charge{{Key: key, Limit: l, Cost: cost}}, mete.Mode{})
	if err != nil {
		t.Fatal(err)
	}
	return snaps[0]
}

// pass lets time pass for a store on the process's clock.
func (s *Store) pass(d time.Duration) { s.started = s.started.Add(-d) }

// sweepAll sweeps all shards immediately.
func (s *Store) sweepAll() {
	for i := range s.shards {
		s.rebuild(&s.shards[i], s.instant(), s.instant())
	}
}

// checkInvariants fails t if a lock or a side row is left behind, or a bucket cannot be found.
func checkInvariants(t *testing.T, s *Store) {
	t.Helper()
	total := 0
	for i := range s.shards {
		table, used := s.shards[i].table.Load(), 0
		seen := map[hash]bool{}
		for j := range table.slots {
			sl := &table.slots[j]
			if sl.word == 0 {
				continue
			}
			used++
			if sl.word&(locked|busy) != 0 || sl.word&generationMask == 0 {
				t.Errorf("shard %d, slot %d: word %x is left locked", i, j, sl.word)
			}
			h := hash{sl.h0, sl.tag &^ numberMask}
			if sl.word&hasSideRow != 0 && s.shards[i].sideRows[h].row == nil {
				t.Errorf("shard %d, slot %d: what was put aside is lost", i, j)
			}
			if found, _ := table.find(h); found != sl || seen[h] {
				t.Errorf("shard %d, slot %d: twice, or not to be found", i, j)
			}
			seen[h] = true
		}
		if used != table.used || used == len(table.slots) {
			t.Errorf("shard %d: %d slots used of %d, counted as %d", i, used, len(table.slots), table.used)
		}
		total += used
		for h := range s.shards[i].sideRows {
			if sl, _ := table.find(h); sl == nil || sl.word&hasSideRow == 0 {
				t.Errorf("shard %d: a state is left aside", i)
			}
		}
		if !s.shards[i].mu.TryLock() {
			t.Errorf("shard %d: its mutex is held", i)
		}
	}
	if int64(total) != s.used.Load() {
		t.Errorf("%d slots used, counted as %d", total, s.used.Load())
	}
}

// Under the process's clock a slot's instant lags behind. Another rate must neither refill for that lag nor
// count it as spending.
func TestRateChange_UnderTheProcessClock(t *testing.T) {
	s := newStore(t, Config{})
	slow, quick := limitOf(t, 10*bucket.Token, 1*bucket.Token, time.Second), limitOf(t, 10*bucket.Token, 10*bucket.Token, time.Second)
	s.take1(t, "raised", slow, bucket.Token)
	s.pass(time.Hour)
	s.take1(t, "raised", slow, 10*bucket.Token)
	if got := s.take1(t, "raised", quick, 9*bucket.Token); got.Allowed {
		t.Errorf("an empty bucket holds %v after its rate was raised", got.Remaining())
	}
	s.take1(t, "lowered", quick, bucket.Token)
	s.pass(time.Hour)
	s.take1(t, "lowered", quick, bucket.Token)
	if got := s.take1(t, "lowered", slow, 8*bucket.Token); !got.Allowed {
		t.Errorf("a bucket with 9 denies 8 after its rate was lowered: it shows %v", got.Remaining())
	}
	s.take1(t, "refunded", quick, bucket.Token)
	s.pass(time.Hour)
	s.take1(t, "refunded", quick, 5*bucket.Token)
	if err := s.Refund(t.Context(), []mete.Refund{{Charge: store.Charge{Key: "refunded", Limit: slow, Cost: bucket.Token}}}, ""); err != nil {
		t.Fatal(err)
	}
	if got := s.take1(t, "refunded", slow, 8*bucket.Token); got.Allowed || got.Remaining() > 6500 {
		t.Errorf("5 of 10 and a refund of 1 leave %v", got.Remaining())
	}
	checkInvariants(t, s)
}

// A key without a slot on the first search and with one on the second is not new.
func TestOpen_AgainFindsWhatCameMeanwhile(t *testing.T) {
	now := bucket.Instant(1_700_000_000_000_000)
	s := newStore(t, Config{MaxKeys: 1, Now: func() bucket.Instant { return now }})
	quick, slow := limitOf(t, bucket.Token, bucket.Token, time.Millisecond), limitOf(t, 5*bucket.Token, 1, time.Second)
	s.take1(t, "quick", quick, bucket.Token)
	charges := []store.Charge{{Key: "k", Limit: slow, Cost: 5 * bucket.Token}}
	tx := s.beginTake(charges)
	if s.open(tx, mete.Mode{}, false) {
		t.Fatal("there was room")
	}
	now += 1_000_000
	s.sweepAll()
	if !s.take1(t, "k", slow, 5*bucket.Token).Allowed {
		t.Fatal("another take of the key was denied")
	}
	s.open(tx, mete.Mode{}, true)
	if got := tx.cells[0].before.Spent; got == 0 {
		t.Error("an empty bucket is taken for a new one")
	}
	s.unlock(tx)
}

// A slot created for an abandoned take is no fuller than an evicted bucket at an instant before its eviction.
func TestOpen_AbandonedSlotsRemember(t *testing.T) {
	now := bucket.Instant(1_700_000_000_000_000)
	s := newStore(t, Config{MaxKeys: 1, Now: func() bucket.Instant { return now }})
	l := limitOf(t, 5*bucket.Token, 1, time.Second)
	for i := range s.shards {
		s.shards[i].evictedAt = now
	}
	now -= 1_000_000
	tx := s.beginTake([]store.Charge{{Key: "a", Limit: l, Cost: 1}, {Key: "b", Limit: l, Cost: 1}})
	if s.open(tx, mete.Mode{}, false) {
		t.Fatal("there was room for two")
	}
	sl, _ := s.find(s.hasher.hash("a"))
	var accounts [bucket.MaxAccounts]bucket.Account
	if sl == nil || s.load(&accounts, sl, "a", &l, now)[0].State.AsOf != now+1_000_000 {
		t.Errorf("slot %+v, want one as of %d", sl, now+1_000_000)
	}
	checkInvariants(t, s)
}

// Overload is decided under the locks.
func TestOpen_SeesOverloadThatCameMeanwhile(t *testing.T) {
	now := bucket.Instant(1_700_000_000_000_000)
	s := newStore(t, Config{MaxKeys: 2, Now: func() bucket.Instant { return now }})
	quick, slow := limitOf(t, bucket.Token, bucket.Token, time.Millisecond), limitOf(t, 5*bucket.Token, 1, time.Second)
	s.take1(t, "quick one", quick, bucket.Token)
	s.take1(t, "quick two", quick, bucket.Token)
	if !s.take1(t, "k", slow, 5*bucket.Token).Allowed || s.Stats().Overflowed != 1 {
		t.Fatal("the key was not served by the overflow bucket")
	}
	now += 1_000_000
	s.sweepAll()
	h := s.hasher.hash("k")
	charge := store.Charge{Key: "k", Limit: slow, Cost: 5 * bucket.Token}
	if _, _, ok := s.takeNew(h, "k", &slow, now, 5*bucket.Token, 0); ok {
		t.Error("takeNew decides although an overflow bucket is not full")
	}
	tx := s.beginTake([]store.Charge{charge})
	if s.open(tx, mete.Mode{}, false) {
		t.Error("open succeeds although an overflow bucket is not full")
		s.unlock(tx)
	}
	if s.take1(t, "k", slow, 2).Allowed { // one thousandth has come back
		t.Error("the key that emptied the overflow bucket has tokens in one of its own")
	}
}

// A bucket that was evicted at one instant is not full at an earlier one.
func TestForgotten_ThenTheClockStepsBack(t *testing.T) {
	now := bucket.Instant(1_700_000_000_000_000)
	s := newStore(t, Config{MaxKeys: 1, Now: func() bucket.Instant { return now }})
	l := limitOf(t, 5*bucket.Token, 5*bucket.Token, time.Second)
	admitted, h := 0, s.hasher.hash("k")
	s.take1(t, "k", l, bucket.Token)
	admitted++
	another := "a" // a key that looks for a place where the bucket is
	for home := s.shard(h).table.Load().home; s.index(s.hasher.hash(another)) != s.index(h) || home(s.hasher.hash(another).h0) != home(h.h0); {
		another += "a"
	}
	for range 10 {
		for range 6 {
			if s.take1(t, "k", l, bucket.Token).Allowed {
				admitted++
			}
		}
		now += 1_000_000
		s.take1(t, another, l, bucket.Token) // in its place: it is full
		s.Reset(t.Context(), []string{another})
		now -= 1_000_000
	}
	if admitted > 10 {
		t.Errorf("a bucket of 5, refilled by 5 a second, admitted %d within a second of clock", admitted)
	}
}

// A take that writes both words of a slot sets a new first word. So no reader mixes parts of two states.
func TestTake_CountsGenerationsOn(t *testing.T) {
	now := bucket.Instant(1_700_000_000_000_000)
	s := newStore(t, Config{Now: func() bucket.Instant { return now }})
	rate := bucket.Rate{Tokens: 5 * bucket.Token, Per: time.Second}
	l, _, err := bucket.Spec{Algorithm: bucket.AlgorithmStepped, Capacity: 5 * bucket.Token, Rate: rate}.Compile()
	if err != nil {
		t.Fatal(err)
	}
	charges := []store.Charge{{Key: "a", Limit: l, Cost: bucket.Token}, {Key: "b", Limit: l, Cost: bucket.Token}}
	seen := map[uint64]bool{}
	for i := range 100 { // each in an interval of its own, with 1 of 5 missing then
		if _, allowed, err := s.Take(t.Context(), nil, charges[:1+i%2], mete.Mode{}); !allowed || err != nil {
			t.Fatalf("take %d: allowed %v, error %v", i, allowed, err)
		}
		_, word := s.find(s.hasher.hash("a"))
		if seen[word] {
			t.Fatalf("take %d leaves word %x again", i, word)
		}
		seen[word] = true
		now += 1_000_000
	}
}

// A full bucket is not replaced while a take of several buckets is about to charge it.
func TestTakeOver_LeavesBusySlots(t *testing.T) {
	s := newStore(t, Config{})
	l := limitOf(t, 5*bucket.Token, bucket.Token, time.Second)
	s.take1(t, "k", l, 0)
	h := s.hasher.hash("k")
	var held hold
	if !s.hold(&held, &store.Charge{Key: "k", Limit: l}) {
		t.Fatal("not held")
	}
	if sl := s.takeOver(s.shard(h), h, s.instant()); sl != nil {
		t.Errorf("slot %+v is taken over", sl)
	}
	release([]hold{held})
	checkInvariants(t, s)
}

// The same applies to an evicted overflow bucket.
func TestForgottenOverflow_ThenTheClockStepsBack(t *testing.T) {
	now := bucket.Instant(1_700_000_000_000_000)
	s := newStore(t, Config{MaxKeys: 1, Now: func() bucket.Instant { return now }})
	l, admitted := limitOf(t, 5*bucket.Token, 5*bucket.Token, time.Second), 0
	s.take1(t, "another", l, bucket.Token)
	for range 10 {
		for range 6 {
			if s.take1(t, "k", l, bucket.Token).Allowed {
				admitted++
			}
		}
		now += 1_000_000
		s.sweepAll()
		now -= 1_000_000
	}
	if admitted > 10 || s.Stats().Overflowed == 0 {
		t.Errorf("a bucket of 5, refilled by 5 a second, admitted %d within a second of clock", admitted)
	}
}

// At the end of a take of several buckets, one may show the take and another not yet. A caller that has seen
// the first never gets the second's old state, under any algorithm.
func TestTakeOne_SaysNothingOfABusySlot(t *testing.T) {
	s := newStore(t, Config{})
	for i, spec := range []bucket.Spec{
		{Capacity: 5 * bucket.Token},
		{Capacity: 5 * bucket.Token, Algorithm: bucket.AlgorithmStepped},
		{Algorithm: bucket.AlgorithmSlidingWindow},
	} {
		spec.Rate = bucket.Rate{Tokens: 5 * bucket.Token, Per: time.Hour}
		l, _, err := spec.Compile()
		if err != nil {
			t.Fatal(err)
		}
		key := string(rune('a' + i))
		s.take1(t, key, l, bucket.Token)
		var held hold
		if !s.hold(&held, &store.Charge{Key: key, Limit: l}) {
			t.Fatalf("%v: not held", l)
		}
		for _, cost := range []bucket.Tokens{bucket.Token, 5 * bucket.Token} {
			if v, _, ok := s.takeOne(key, &l, cost, 0, false); ok {
				t.Errorf("%v: a take of %v from a busy bucket is answered: %+v", l, cost, v)
			}
		}
		release([]hold{held})
	}
	checkInvariants(t, s)
}

// A full bucket is evicted no earlier than its own instant. Otherwise the next take would see its time run back.
func TestForgotten_NotBeforeItsInstant(t *testing.T) {
	now := bucket.Instant(1_700_000_000_000_000)
	s := newStore(t, Config{Now: func() bucket.Instant { return now }})
	l := limitOf(t, 5*bucket.Token, 5*bucket.Token, time.Second)
	now += 1_000_000
	s.take1(t, "k", l, 0)
	now -= 1_000_000
	s.sweepAll()
	s.take1(t, "k", l, 5*bucket.Token)
	if got, want := s.take1(t, "k", l, bucket.Token).RetryAfter, 1200*time.Millisecond; got != want {
		t.Errorf("an empty bucket that is a second ahead says retry after %v, want %v", got, want)
	}
}

// A goroutine may stall between reading the clock and reading the bucket, and a clock may step back.
func TestStaleInstant_CreatesNothing(t *testing.T) {
	now := bucket.Instant(1_700_000_000_000_000)
	c := Config{MaxKeys: 1, Now: func() bucket.Instant { return now }}
	// stale calls f as if the clock had been read 10 minutes ago.
	stale := func(s *Store, f func()) {
		now = now.Add(10 * time.Minute)
		s.sweepAll() // evicts full buckets
		now = now.Add(-10 * time.Minute)
		f()
		now = now.Add(10 * time.Minute)
	}
	s := newStore(t, c)
	l := limitOf(t, 10*bucket.Token, bucket.Token, time.Minute)
	s.take1(t, "k", l, 10*bucket.Token)
	stale(s, func() { s.takeNew(s.hasher.hash("k"), "k", &l, now, 10*bucket.Token, 0) })
	if got := s.take1(t, "k", l, bucket.Token); got.Allowed {
		t.Errorf("20 of 10 were admitted at once, and %v are left", got.Remaining())
	}

	s = newStore(t, c)
	s.take1(t, "quick", limitOf(t, bucket.Token, bucket.Token, time.Second), bucket.Token)
	if !s.take1(t, "k", l, 10*bucket.Token).Allowed || s.Stats().Overflowed != 1 {
		t.Fatal("the key was not served by the overflow bucket")
	}
	stale(s, func() { s.take1(t, "k", l, 10*bucket.Token) })
	if got := s.take1(t, "k", l, bucket.Token); got.Allowed {
		t.Errorf("20 of 10 were admitted at once after 10 of an overflow bucket, and %v are left", got.Remaining())
	}

	zero := bucket.Tokens(0)
	l, _, err := bucket.Spec{Capacity: 5 * bucket.Token, Rate: bucket.Rate{Tokens: bucket.Token, Per: time.Second}, MaxReserved: &zero}.Compile()
	if err != nil {
		t.Fatal(err)
	}
	s = newStore(t, Config{Now: c.Now})
	s.steady = true // the clock does not step back; a goroutine stalls
	s.take1(t, "k", l, bucket.Token)
	now = now.Add(time.Minute)
	s.take1(t, "k", l, 5*bucket.Token)
	now = now.Add(-time.Minute)
	s.takeOne("k", &l, 0, 0, false)
	now = now.Add(time.Minute)
	if got := s.take1(t, "k", l, bucket.Token); got.Allowed {
		t.Errorf("a take of nothing filled an empty bucket: %v are left", got.Remaining())
	}
}

// Instants at both ends of their range neither panic nor admit too much.
func TestInstants_Extreme(t *testing.T) {
	for _, base := range []bucket.Instant{math.MinInt64, -1, 0, 1_700_000_000_000_000, math.MaxInt64} {
		for _, at := range []bucket.Instant{math.MinInt64, -50_000, 0, 1, math.MaxInt64 / 2, math.MaxInt64} {
			now := base
			s := newStore(t, Config{MaxKeys: 2, Now: func() bucket.Instant { return now }})
			now = at
			l := limitOf(t, 3*bucket.Token, bucket.Token, time.Hour)
			admitted := 0
			for i := range 8 {
				if s.take1(t, "k", l, bucket.Token).Allowed {
					admitted++
				}
				s.take1(t, string(rune('a'+i)), l, bucket.Token)
			}
			if admitted > 3 {
				t.Errorf("store of %d, at %d: a bucket of 3 admitted %d", base, at, admitted)
			}
			checkInvariants(t, s)
		}
	}
}
