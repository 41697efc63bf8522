// SPDX-License-Identifier: Apache-2.0

package lease_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/lease"
	"github.com/metehq/mete/internal/lease/leasetest"
)

// between is a Lender that intercepts calls.
type between struct {
	lender lease.Lender
	loans  atomic.Int64
	err    atomic.Pointer[error]
	delay  atomic.Int64
}

func (b *between) Borrow(ctx context.Context, loan lease.Loan) (lease.Grant, error) {
	b.loans.Add(1)
	if d := b.delay.Load(); d > 0 {
		select {
		case <-ctx.Done():
			return lease.Grant{}, ctx.Err()
		case <-time.After(time.Duration(d)):
		}
	}
	if err := b.err.Load(); err != nil {
		return lease.Grant{}, *err
	}
	return b.lender.Borrow(ctx, loan)
}

func TestClose_GivesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bank, limit := newBank(), compile(t, thousand)
		slow := &between{lender: bank}
		b := newBorrower(t, lease.Config{Lender: slow})
		keys := []string{"a", "b", "c"}
		for range 100 {
			for _, key := range keys {
				b.Take(key, &limit, bucket.Token)
			}
			pass(time.Millisecond)
		}
		slow.delay.Store(int64(50 * time.Millisecond))
		ask(b, "a", &limit, 40, time.Millisecond) // a loan is in flight
		if err := b.Close(t.Context()); err != nil {
			t.Errorf("Close: %v", err)
		}
		for _, key := range keys {
			if lent := bank.Leased(key, &limit); lent != 0 {
				t.Errorf("%v of %s is lent after Close", lent, key)
			}
		}
		if s := b.Stats(); s.Leased != 0 || s.Unspent != 0 || s.Lost != 0 {
			t.Errorf("after Close: %+v", s)
		}
		if hits := ask(b, "a", &limit, 20, 0); hits != 0 {
			t.Errorf("%d takes were answered after Close", hits)
		}
		if err := b.Close(t.Context()); !errors.Is(err, lease.ErrClosed) {
			t.Errorf("second Close: %v, want ErrClosed", err)
		}
	})
}

func TestClose_OfStoreThatFails(t *testing.T) {
	for _, tt := range []struct {
		name   string
		breaks func(*between)
		want   string
	}{
		{"error", func(l *between) { err := errors.New("no route"); l.err.Store(&err) }, "no route"},
		{"silence", func(l *between) { l.delay.Store(int64(time.Hour)) }, "context canceled"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				bank, limit := newBank(), compile(t, thousand)
				far := &between{lender: bank}
				b := newBorrower(t, lease.Config{Lender: far})
				ask(b, "a", &limit, 100, time.Millisecond)
				held := b.Stats().Unspent
				tt.breaks(far)
				ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
				defer cancel()
				began := time.Now()
				err := b.Close(ctx)
				if err == nil || !strings.Contains(err.Error(), "1 of 1 leases") || !strings.Contains(err.Error(), tt.want) {
					t.Errorf("Close: error %v", err)
				}
				if d := time.Since(began); d > 300*time.Millisecond {
					t.Errorf("Close took %v", d)
				}
				if s := b.Stats(); s.Lost != held || s.Unspent != 0 {
					t.Errorf("%+v, want %v lost", s, held)
				}
				pass(5 * time.Second)
				if lent := bank.Leased("a", &limit); lent != 0 {
					t.Errorf("%v is lent after TTL and grace", lent)
				}
			})
		})
	}
}

// TestTake_BacksOff proves that a store without tokens, or without an answer, gets few loans.
func TestTake_BacksOff(t *testing.T) {
	for name, breaks := range map[string]func(*between, *leasetest.Bank, *bucket.Limit){
		"empty": func(_ *between, bank *leasetest.Bank, l *bucket.Limit) { bank.Take("a", l, l.Capacity()) },
		"error": func(l *between, _ *leasetest.Bank, _ *bucket.Limit) { err := errors.New("no route"); l.err.Store(&err) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				bank, limit := newBank(), compile(t, bucket.Spec{Capacity: 1000 * bucket.Token, Rate: bucket.Rate{Tokens: bucket.Token, Per: time.Minute}})
				far := &between{lender: bank}
				b := newBorrower(t, lease.Config{Lender: far})
				breaks(far, bank, &limit)
				if hits := ask(b, "a", &limit, 5000, time.Millisecond); hits != 0 {
					t.Errorf("%d takes were answered", hits)
				}
				if n := far.loans.Load(); n > 10 {
					t.Errorf("%d loans in 5 s, want at most 10", n)
				}
				pass(20 * time.Second)
			})
		})
	}
}

// TestTake_Concurrent spends a bucket without refill concurrently: exactly its tokens.
func TestTake_Concurrent(t *testing.T) {
	limit := compile(t, bucket.Spec{Capacity: 100_000 * bucket.Token, Rate: bucket.Rate{Tokens: bucket.Token, Per: 24 * time.Hour}})
	bank := &leasetest.Bank{Now: func() bucket.Instant { return 1e15 }}
	var nodes []*lease.Borrower
	for _, name := range []string{"a", "b", "c"} {
		b, err := lease.New(lease.Config{Lender: bank, Node: name, Period: time.Millisecond, TTL: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		nodes = append(nodes, b)
	}
	var admitted, undone atomic.Int64
	var all sync.WaitGroup
	for i := range 9 {
		all.Go(func() {
			for j := range 8000 {
				_, lot, ok := nodes[i%3].Take("k", &limit, bucket.Token)
				switch {
				case !ok && bank.Take("k", &limit, bucket.Token).Allowed:
					admitted.Add(1)
				case ok && j%7 == 0 && lot.Untake():
					undone.Add(1)
				case ok:
					admitted.Add(1)
				}
			}
		})
	}
	all.Wait()
	for _, b := range nodes {
		if err := b.Close(t.Context()); err != nil {
			t.Errorf("Close: %v", err)
		}
	}
	left := bank.Take("k", &limit, 0).Remaining().Whole()
	if admitted.Load()+left != 100_000 {
		t.Errorf("%d admitted and %d left of 100000 (%d undone)", admitted.Load(), left, undone.Load())
	}
}
