// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/lease"
	"github.com/metehq/mete/internal/lease/leasetest"
	"github.com/metehq/mete/internal/proctest"
	"github.com/metehq/mete/internal/testseed"
	"github.com/metehq/mete/store"
	"github.com/metehq/mete/storetest"
	"github.com/redis/rueidis"
)

// TestLending_IsAsTheBookSays runs the same loans, takes, refunds and resets against Redis and the reference,
// with a clock that also steps back.
func TestLending_IsAsTheBookSays(t *testing.T) {
	t.Parallel()
	client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{proctest.StartRedis(t).Addr}, DisableCache: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	for seed := range uint64(40) {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			r := rand.New(testseed.PCG(seed, 3))
			spec := bucket.Spec{Capacity: bucket.Tokens(1000 + r.Int64N(100_000)), Rate: bucket.Rate{
				Tokens: bucket.Tokens(1 + r.Int64N(20_000)), Per: time.Duration(1+r.Int64N(3000)) * time.Millisecond}}
			if seed%3 == 0 {
				spec.Algorithm = bucket.AlgorithmStepped
			}
			l, _, err := spec.Compile()
			if err != nil {
				t.Fatal(err)
			}
			clock := storetest.NewClock()
			s, err := New(client, Config{Prefix: fmt.Sprintf("book%d:", seed), Now: clock.Now, Timeout: 30 * time.Second})
			if err != nil {
				t.Fatal(err)
			}
			b := bookkeeping{T: t, store: s, clock: clock, limit: l, spent: map[string]bucket.Tokens{}}
			for range 300 {
				b.step(r)
			}
		})
	}
}

// bookkeeping compares a bucket in Redis with its book.
type bookkeeping struct {
	*testing.T
	store *Store
	clock *storetest.Clock
	limit bucket.Limit
	book  leasetest.Book
	seq   uint64
	spent map[string]bucket.Tokens // by holder
}

func (b *bookkeeping) step(r *rand.Rand) {
	switch r.IntN(8) {
	case 0:
		b.clock.Advance(-r.Int64N(2_000_000))
	case 1, 2:
	default:
		b.clock.Advance(r.Int64N(1 << (1 + r.IntN(23))))
	}
	amount := bucket.Tokens(r.Int64N(int64(b.limit.Capacity())))
	switch r.IntN(10) {
	case 0:
		b.refund(amount / 4)
	case 1, 2, 3:
		b.borrow(r, amount)
	default:
		b.take(amount)
	}
}

func (b *bookkeeping) charge(cost bucket.Tokens) []store.Charge {
	return []store.Charge{{Key: "k", Limit: b.limit, Cost: cost, Leased: true}}
}

func (b *bookkeeping) take(cost bucket.Tokens) {
	b.Helper()
	before, now := b.book.Clone(), b.clock.Now()
	want := b.book.Take(&b.limit, now, cost)
	snaps, allowed, err := b.store.Take(b.Context(), nil, b.charge(cost), mete.Mode{})
	if err != nil {
		b.Fatal(err)
	}
	got := snaps[0]
	if allowed != want.Allowed || got.RetryAfter != want.RetryAfter || got.Remaining() != want.Remaining() {
		b.Fatalf("take of %v at %d from %+v, %v:\n got %v, %v remain, retry after %v\nwant %v, %v remain, retry after %v", cost, now, before, b.limit,
			allowed, got.Remaining(), got.RetryAfter, want.Allowed, want.Remaining(), want.RetryAfter)
	}
}

func (b *bookkeeping) refund(amount bucket.Tokens) {
	b.Helper()
	if err := b.store.Refund(b.Context(), storetest.Refunds(b.charge(amount)...), ""); err != nil {
		b.Fatal(err)
	}
	if b.book.State.Spent > 0 {
		b.book.Refund(&b.limit, b.clock.Now(), amount)
	}
}

func (b *bookkeeping) borrow(r *rand.Rand, want bucket.Tokens) {
	b.Helper()
	holder := fmt.Sprint("h", r.IntN(4))
	b.seq++
	seq := b.seq
	if r.IntN(10) == 0 {
		seq -= uint64(r.Int64N(int64(seq))) // a late loan
	}
	keep := bucket.Tokens(0)
	for _, e := range b.book.Entries {
		if e.Holder == holder {
			used := bucket.Tokens(r.Int64N(int64(e.Amount) + 1))
			b.spent[holder], keep = e.Spent+used, bucket.Tokens(r.Int64N(int64(e.Amount-used)+1))
		}
	}
	if r.IntN(8) == 0 {
		keep += bucket.Tokens(r.Int64N(20_000)) // of an entry that has ended
	}
	loan := lease.Loan{Key: "k", Limit: b.limit, Holder: holder, Seq: seq, Spent: b.spent[holder], Keep: keep,
		Want: want * bucket.Tokens(r.IntN(2)), TTL: time.Duration(1+r.Int64N(3_000_000)) * time.Microsecond}
	book, now := b.book.Clone(), b.clock.Now()
	wantGrant, wantErr := b.book.Borrow(loan, now)
	got, err := lender{b.store}.Borrow(b.Context(), loan)
	if (err != nil) != (wantErr != nil) || err == nil && (got.Tokens != wantGrant.Tokens || got.Kept != wantGrant.Kept) {
		b.Fatalf("%+v at %d of %+v:\n got %+v, %v\nwant %+v, %v", loan, now, book, got, err, wantGrant, wantErr)
	}
}
