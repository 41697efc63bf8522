// SPDX-License-Identifier: Apache-2.0

package lease_test

import (
	"errors"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/lease"
	"github.com/metehq/mete/internal/lease/leasetest"
)

// thousand holds 1000 tokens and refills 2000 per second.
var thousand = bucket.Spec{Capacity: 1000 * bucket.Token, Rate: bucket.PerSecond(2000 * bucket.Token)}

func compile(t *testing.T, spec bucket.Spec) bucket.Limit {
	t.Helper()
	limit, _, err := spec.Compile()
	if err != nil {
		t.Fatal(err)
	}
	return limit
}

// newBank returns a bank with the bubble's clock.
func newBank() *leasetest.Bank {
	return &leasetest.Bank{Now: func() bucket.Instant { return bucket.At(time.Now()) }}
}

func newBorrower(t *testing.T, c lease.Config) *lease.Borrower {
	t.Helper()
	c.Node = "node"
	b, err := lease.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// pass advances the bubble's clock by d.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// ask takes n tokens, one by one with gap in between, and returns the number served from leases.
func ask(b *lease.Borrower, key string, limit *bucket.Limit, n int, gap time.Duration) (hits int) {
	for range n {
		if _, _, ok := b.Take(key, limit, bucket.Token); ok {
			hits++
		}
		pass(gap)
	}
	return hits
}

func TestTake_HotBucketIsLeased(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bank, limit := newBank(), compile(t, thousand)
		b := newBorrower(t, lease.Config{Lender: bank})
		const takes = 2000 // within two seconds
		hits := ask(b, "a", &limit, takes, time.Millisecond)
		if hits < takes*98/100 {
			t.Errorf("%d of %d takes of a hot bucket were answered here, want 98 %%", hits, takes)
		}
		s := b.Stats()
		if s.Leased != 1 || s.Spent != bucket.Tokens(hits)*bucket.Token || s.Granted != s.Spent+s.Returned+s.Lost+s.Unspent {
			t.Errorf("%+v after %d takes that were answered here", s, hits)
		}
		if s.Loans > 60 { // one per half period, plus the loans for growth
			t.Errorf("%d loans in two seconds, want about 45", s.Loans)
		}
		if want := 200 * bucket.Token; s.WorstUnderUse != want {
			t.Errorf("worst under-use %v, want %v", s.WorstUnderUse, want)
		}

		pass(300 * time.Millisecond) // three periods
		if s, lent := b.Stats(), bank.Leased("a", &limit); lent != 0 || s.Leased != 0 || s.Unspent != 0 || s.WorstUnderUse != 0 {
			t.Errorf("three periods after the last take %v is lent: %+v", lent, s)
		}
		if s := b.Stats(); s.Lost != 0 || s.Efficiency() < 0.9 {
			t.Errorf("efficiency %.3f, want 0.9: %+v", s.Efficiency(), s)
		}
		// Nothing has been closed: a goroutine left after the next tick would make the test panic.
		pass(100 * time.Millisecond)
	})
}

func TestTake_NotLeased(t *testing.T) {
	window := bucket.Spec{Algorithm: bucket.AlgorithmSlidingWindow, Rate: bucket.PerSecond(1000 * bucket.Token)}
	log := bucket.Spec{Algorithm: bucket.AlgorithmSlidingLog, Rate: bucket.PerSecond(1000 * bucket.Token)}
	queue, first, small := thousand, thousand, thousand
	queue.Queue = bucket.Token
	first.Algorithm, first.Anchor = bucket.AlgorithmStepped, bucket.AnchorFirst
	small.Capacity = 79 * bucket.Token // a tenth is less than 8 takes
	for _, tt := range []struct {
		name string
		spec bucket.Spec
		cost bucket.Tokens
		gap  time.Duration
	}{
		{"few takes", thousand, bucket.Token, 20 * time.Millisecond},
		{"costs nothing", thousand, 0, time.Millisecond},
		{"costs less than nothing", thousand, -bucket.Token, time.Millisecond},
		{"costs the earth", thousand, math.MaxInt64, time.Millisecond},
		{"costs more than an eighth of the share", thousand, 13 * bucket.Token, time.Millisecond},
		{"sliding window", window, bucket.Token, time.Millisecond},
		{"sliding log", log, bucket.Token, time.Millisecond},
		{"queue", queue, bucket.Token, time.Millisecond},
		{"intervals that begin when it was full", first, bucket.Token, time.Millisecond},
		{"small", small, bucket.Token, time.Millisecond},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b, limit := newBorrower(t, lease.Config{Lender: newBank()}), compile(t, tt.spec)
				for range 100 {
					if _, lot, ok := b.Take("a", &limit, tt.cost); ok || lot.Untake() {
						t.Fatalf("a take of %v was answered here", tt.cost)
					}
					pass(tt.gap)
				}
				if s := b.Stats(); s.Loans != 0 {
					t.Errorf("%d loans, want none", s.Loans)
				}
			})
		})
	}
}

// TestTake_Snapshot proves that the snapshot of a single node shows the real bucket.
func TestTake_Snapshot(t *testing.T) {
	for name, spec := range map[string]bucket.Spec{
		"continuous": {Capacity: 1000 * bucket.Token, Rate: bucket.PerSecond(50 * bucket.Token)},
		"stepped": {Algorithm: bucket.AlgorithmStepped, Capacity: 1000 * bucket.Token,
			Rate: bucket.Rate{Tokens: 50 * bucket.Token, Per: time.Second}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				bank, limit := newBank(), compile(t, spec)
				b := newBorrower(t, lease.Config{Lender: bank})
				var ideal bucket.State
				hits := 0
				for range 600 {
					now := bank.Now()
					var want bucket.Snapshot
					ideal, want = limit.Take(ideal, now, bucket.Token)
					snap, _, ok := b.Take("a", &limit, bucket.Token)
					if !ok {
						bank.Take("a", &limit, bucket.Token)
						pass(time.Millisecond)
						continue
					}
					hits++
					// Refill during a lease may be cut off. The take that caused the loan may have reached the
					// bank after it.
					if got := snap.Remaining(); got > want.Remaining()+bucket.Token || got < want.Remaining()-100*bucket.Token {
						t.Fatalf("%v remain, want %v and less by at most what is lent", got, want.Remaining())
					}
					if !snap.Allowed || snap.Cost != bucket.Token || snap.Limit != limit || snap.RetryAfter != 0 || snap.Wait() != 0 {
						t.Fatalf("snapshot %+v", snap)
					}
					pass(time.Millisecond)
				}
				if hits < 500 {
					t.Errorf("%d hits of 600", hits)
				}
				pass(time.Second)
			})
		})
	}
}

func TestLot_Untake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bank, limit := newBank(), compile(t, thousand)
		b := newBorrower(t, lease.Config{Lender: bank})
		ask(b, "a", &limit, 100, time.Millisecond)
		before := b.Stats()
		_, lot, ok := b.Take("a", &limit, 3*bucket.Token)
		if !ok || !lot.Untake() {
			t.Fatal("a take of what is there was not answered here, or could not be undone")
		}
		if after := b.Stats(); after != before {
			t.Errorf("undone: %+v, want %+v", after, before)
		}
		_, lot, _ = b.Take("a", &limit, 3*bucket.Token)
		pass(time.Second) // the slice is returned: the store knows that it was spent
		if lot.Untake() {
			t.Error("a take was undone after the store had been told of it")
		}
		if s, lent := b.Stats(), bank.Leased("a", &limit); lent != 0 || s.Unspent != 0 {
			t.Errorf("%v lent, %+v", lent, s)
		}
	})
}

// TestTake_LimitChanges proves that a take under another limit does not spend the old limit's lease.
func TestTake_LimitChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bank, old := newBank(), compile(t, thousand)
		b := newBorrower(t, lease.Config{Lender: bank})
		ask(b, "a", &old, 100, time.Millisecond)
		raised := thousand
		raised.Capacity *= 2
		limit := compile(t, raised)
		if _, _, ok := b.Take("a", &limit, bucket.Token); ok {
			t.Error("a take under a new limit was answered from a slice of the old one")
		}
		synctest.Wait()
		if lent := bank.Leased("a", &limit); lent != 0 {
			t.Errorf("%v is lent still", lent)
		}
		if hits := ask(b, "a", &limit, 200, time.Millisecond); hits < 180 {
			t.Errorf("%d of 200 takes under the new limit were answered here", hits)
		}
		b.Drop("a")
		b.Drop("b")
		synctest.Wait()
		if lent := bank.Leased("a", &limit); lent != 0 {
			t.Errorf("%v is lent after Forget", lent)
		}
		pass(time.Second)
	})
}

func TestTake_MaxKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limit := compile(t, thousand)
		b := newBorrower(t, lease.Config{Lender: newBank(), MaxKeys: 1})
		for range 50 {
			for _, key := range []string{"a", "b"} {
				if _, _, ok := b.Take(key, &limit, bucket.Token); ok && key == "b" {
					t.Fatal("a second bucket is leased, MaxKeys is 1")
				}
			}
			pass(time.Millisecond)
		}
		if s := b.Stats(); s.Leased != 1 || s.Refused == 0 {
			t.Errorf("%+v, want one leased and some refused", s)
		}
		pass(time.Second)
		if hits := ask(b, "b", &limit, 50, time.Millisecond); hits < 30 {
			t.Errorf("%d of 50 takes were answered here when there was room again", hits)
		}
		pass(time.Second)
	})
}

func TestTake_AllocatesNothing(t *testing.T) {
	b, limit := leased(t)
	cold := compile(t, thousand)
	if n := testing.AllocsPerRun(1000, func() { b.Take("hot", &limit, bucket.Token) }); n != 0 {
		t.Errorf("a take from a slice allocates %v times", n)
	}
	if n := testing.AllocsPerRun(5, func() { b.Take("cold", &cold, bucket.Token) }); n != 0 {
		t.Errorf("a take of a bucket that is not leased allocates %v times", n)
	}
}

func TestNew_RefusesBadConfig(t *testing.T) {
	_, err := lease.New(lease.Config{
		Period: time.Hour, MinSlice: -1, Share: math.NaN(), TTL: -1, Grace: -1, MaxKeys: -1,
	})
	if !errors.Is(err, lease.ErrConfig) {
		t.Fatalf("New: error %v, want ErrConfig", err)
	}
	for _, want := range []string{"lender is", "node is", "period 1h", "min slice -0.001", "share NaN", "ttl -1ns", "grace -1ns", "max keys -1"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("New: error %q does not say %q", err, want)
		}
	}
}
