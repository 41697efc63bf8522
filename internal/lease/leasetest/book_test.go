// SPDX-License-Identifier: Apache-2.0

package leasetest_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/lease"
	"github.com/metehq/mete/internal/lease/leasetest"
	"github.com/metehq/mete/internal/testseed"
)

var specs = []bucket.Spec{
	{Capacity: 100 * bucket.Token, Rate: bucket.Rate{Tokens: 7 * bucket.Token, Per: 100_003 * time.Microsecond}},
	{Capacity: 100 * bucket.Token, Rate: bucket.Rate{Tokens: 7 * bucket.Token, Per: 100_003 * time.Microsecond}, Algorithm: bucket.AlgorithmStepped},
}

func compile(t *testing.T, spec bucket.Spec) bucket.Limit {
	t.Helper()
	limit, _, err := spec.Compile()
	if err != nil {
		t.Fatal(err)
	}
	return limit
}

// loan is the first loan of a holder for this many tokens.
func loan(l bucket.Limit, holder string, want bucket.Tokens, ttl time.Duration) lease.Loan {
	return lease.Loan{Limit: l, Holder: holder, Seq: 1, Want: want, TTL: ttl}
}

// random returns a book after a few random operations, and its instant.
func random(t *testing.T, r *rand.Rand, l bucket.Limit) (leasetest.Book, bucket.Instant) {
	t.Helper()
	var b leasetest.Book
	now := bucket.Instant(1e15)
	for i := range 1 + r.IntN(6) {
		now += bucket.Instant(r.Int64N(400_000))
		if r.IntN(2) == 0 {
			b.Take(&l, now, bucket.Tokens(r.Int64N(60_000)))
			continue
		}
		want, ttl := bucket.Tokens(1+r.Int64N(40_000)), time.Duration(1+r.Int64N(3_000_000))*time.Microsecond
		if _, err := b.Borrow(loan(l, fmt.Sprint(i), want, ttl), now); err != nil {
			t.Fatal(err)
		}
	}
	return b, now
}

// TestBook_LookingMakesNoDifference proves that settling more often has no effect, because entries end at their
// time.
func TestBook_LookingMakesNoDifference(t *testing.T) {
	for i := range uint64(2000) {
		r := rand.New(testseed.PCG(i, 1))
		l := compile(t, specs[i%2])
		b, now := random(t, r, l)
		then := now + bucket.Instant(r.Int64N(5_000_000))
		once, often := b.Clone(), b.Clone()
		once.Settle(&l, then)
		for at := now; at < then; at += 1 + bucket.Instant(r.Int64N(100_000)) {
			often.Settle(&l, at)
		}
		often.Settle(&l, then)
		if once.State != often.State || len(once.Entries) != len(often.Entries) {
			t.Fatalf("seed %d: looked at once: %+v; often: %+v", i, once, often)
		}
	}
}

// TestBook_Waits proves that waits are exact while leases exist, and that a bucket can be deleted after
// FullAfter.
func TestBook_Waits(t *testing.T) {
	for i := range uint64(2000) {
		r := rand.New(testseed.PCG(i, 2))
		l := compile(t, specs[i%2])
		b, now := random(t, r, l)
		full := b.Clone()
		if full.Settle(&l, now.Add(b.FullAfter(&l, now))); len(full.Entries) != 0 || full.State.Spent != 0 {
			t.Fatalf("seed %d: after full-after: %+v", i, full)
		}
		cost := bucket.Tokens(r.Int64N(110_000))
		c := b.Clone()
		snap := c.Take(&l, now, cost)
		if snap.Allowed {
			continue
		}
		if snap.RetryAfter == bucket.Never {
			if cost <= l.Capacity() {
				t.Fatalf("seed %d: %v of %v is never there", i, cost, l.Capacity())
			}
			continue
		}
		then := now.Add(snap.RetryAfter)
		if early := b.Clone(); early.Take(&l, then-1, cost).Allowed {
			t.Fatalf("seed %d: %v is there before %v: %+v", i, cost, snap.RetryAfter, b)
		}
		if late := b.Clone(); !late.Take(&l, then, cost).Allowed {
			t.Fatalf("seed %d: %v is not there after %v: %+v", i, cost, snap.RetryAfter, b)
		}
	}
}

// TestBook_Borrow follows one holder.
func TestBook_Borrow(t *testing.T) {
	l := compile(t, bucket.Spec{Capacity: 100 * bucket.Token, Rate: bucket.Rate{Tokens: bucket.Token, Per: time.Hour}})
	const now = bucket.Instant(1e15)
	var b leasetest.Book
	for i, tt := range []struct {
		after             time.Duration // since the first
		seq               uint64
		spent, keep, want bucket.Tokens
		granted           bucket.Tokens
		kept              bool
		err               error
		there, lent       bucket.Tokens // afterwards, with less than a token refilled meanwhile
	}{
		{seq: 1, want: 30, granted: 30, there: 70, lent: 30},
		{seq: 2, spent: 20, keep: 10, want: 20, granted: 20, kept: true, there: 50, lent: 30},
		{seq: 2, spent: 20, keep: 10, want: 20, err: leasetest.ErrStale, there: 50, lent: 30},
		{seq: 1, want: 30, err: leasetest.ErrStale, there: 50, lent: 30},
		{seq: 3, spent: 25, keep: 5, kept: true, there: 70, lent: 5},               // the holder does not know of the 20
		{seq: 4, spent: 25, want: 90, granted: 75, kept: true, there: 0, lent: 75}, // all remaining tokens
		{seq: 5, spent: 100, want: 10, granted: 0, kept: true, there: 0},
		{seq: 7, spent: 100, kept: false, there: 0},
		{seq: 6, spent: 100, keep: 50, want: 1, granted: 0, there: 0}, // its kept tokens are not recorded
		{after: 10 * time.Hour, seq: 8, spent: 100, want: 5, granted: 5, there: 5, lent: 5},
		{after: 10*time.Hour + time.Second, seq: 9, spent: 100, keep: 5, kept: false, there: 5}, // ended
	} {
		g, err := b.Borrow(lease.Loan{
			Limit: l, Holder: "h", Seq: tt.seq, Spent: tt.spent * bucket.Token, Keep: tt.keep * bucket.Token,
			Want: tt.want * bucket.Token, TTL: time.Second,
		}, now.Add(tt.after))
		if !errors.Is(err, tt.err) || g.Tokens/bucket.Token != tt.granted || g.Kept != tt.kept {
			t.Errorf("loan %d: granted %v, kept %v, error %v; want %d, %v, %v", i, g.Tokens, g.Kept, err, tt.granted, tt.kept, tt.err)
		}
		there := l.Peek(b.State, now.Add(tt.after), 0, 0).Remaining()
		if there/bucket.Token != tt.there || b.Leased()/bucket.Token != tt.lent {
			t.Errorf("after loan %d %v is there and %v lent, want %d and %d", i, there, b.Leased(), tt.there, tt.lent)
		}
	}
}

// TestBook_ResetAndRefund proves that leased tokens count as spent after a reset or a refund.
func TestBook_ResetAndRefund(t *testing.T) {
	l := compile(t, specs[0])
	now := bucket.Instant(1e15)
	for name, do := range map[string]func(*leasetest.Book){
		"reset":  func(b *leasetest.Book) { b.Reset(&l, now) },
		"refund": func(b *leasetest.Book) { b.Refund(&l, now, 1000*bucket.Token) },
	} {
		var b leasetest.Book
		if _, err := b.Borrow(loan(l, "h", 30*bucket.Token, time.Second), now); err != nil {
			t.Fatal(err)
		}
		b.Take(&l, now, 50*bucket.Token)
		do(&b)
		if there := l.Peek(b.State, now, 0, 0).Remaining(); there != 70*bucket.Token {
			t.Errorf("after a %s %v is there with 30 of 100 lent, want 70", name, there)
		}
		if there := b.Take(&l, now.Add(999_999*time.Microsecond), 0).Remaining(); there != 70*bucket.Token {
			t.Errorf("%s: %v is there before the entry ends, want 70", name, there)
		}
	}
}

// TestBook_EntryOfALostAnswer sends two loans after the end of an entry. The holder does not know the entry that the first
// one made. The second keeps nothing of it, and all tokens return once.
func TestBook_EntryOfALostAnswer(t *testing.T) {
	for _, spec := range specs {
		l := compile(t, spec)
		var b leasetest.Book
		now := bucket.Instant(1e15)
		borrow := func(seq uint64, keep, want bucket.Tokens) lease.Grant {
			g, err := b.Borrow(lease.Loan{Limit: l, Holder: "h", Seq: seq, Keep: keep, Want: want, TTL: time.Second}, now)
			if err != nil {
				t.Fatal(err)
			}
			return g
		}
		borrow(1, 0, 24*bucket.Token)
		now += 10_000_000 // its entry has ended
		if snap := b.Take(&l, now, 2*bucket.Token); !snap.Allowed {
			t.Fatalf("denied: %+v", snap)
		}
		for seq := uint64(2); seq <= 3; seq++ {
			if g := borrow(seq, 24*bucket.Token, 16*bucket.Token); g.Kept || g.Tokens != 16*bucket.Token {
				t.Errorf("loan %d: got %+v, want 16 tokens and nothing kept", seq, g)
			}
		}
		borrow(4, 0, 0)
		if got := l.Peek(b.State, now, 0, 0).Missing(); got != 2*bucket.Token {
			t.Errorf("the bucket misses %v, want the 2 of the take", got)
		}
	}
}
