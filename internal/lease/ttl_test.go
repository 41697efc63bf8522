// SPDX-License-Identifier: Apache-2.0

package lease_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/lease"
	"github.com/metehq/mete/internal/lease/leasetest"
)

// deaf is a Lender that answers after this delay, ignoring the context.
type deaf struct {
	lender lease.Lender
	delay  time.Duration
	sent   time.Time // the last answered loan
	err    error
}

func (d *deaf) Borrow(ctx context.Context, loan lease.Loan) (lease.Grant, error) {
	sent, err := time.Now(), d.err
	time.Sleep(d.delay)
	if err != nil {
		return lease.Grant{}, err
	}
	d.sent = sent
	return d.lender.Borrow(ctx, loan)
}

// TestTake_StopsAtTTL proves that a slice is spent until TTL after its request, however late the answer came.
func TestTake_StopsAtTTL(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limit := compile(t, bucket.Spec{Capacity: 100_000 * bucket.Token, Rate: bucket.PerSecond(100_000 * bucket.Token)})
		d := &deaf{lender: newBank(), delay: 400 * time.Millisecond}
		b := newBorrower(t, lease.Config{Lender: d})
		if hits := ask(b, "a", &limit, 6000, time.Millisecond); hits < 2000 {
			t.Fatalf("%d hits of 6000", hits)
		}
		for b.Stats().Unspent < 300*bucket.Token {
			ask(b, "a", &limit, 1, time.Millisecond)
		}
		d.err = errors.New("no route")
		var last time.Time
		for range 300 { // fewer tokens than held from now on
			if _, _, ok := b.Take("a", &limit, bucket.Token); ok {
				last = time.Now()
			}
			pass(10 * time.Millisecond)
		}
		if ran := last.Sub(d.sent); ran >= time.Second || ran < 980*time.Millisecond {
			t.Errorf("a slice was spent until %v after it was asked for, want until just before 1 s", ran)
		}
		pass(10 * time.Second)
	})
}

// TestTake_GrantComesTooLate proves that an expired grant is not spent.
func TestTake_GrantComesTooLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bank, limit := newBank(), compile(t, thousand)
		b := newBorrower(t, lease.Config{Lender: &deaf{lender: bank, delay: time.Second}})
		if hits := ask(b, "a", &limit, 5000, time.Millisecond); hits != 0 {
			t.Errorf("%d takes were answered from grants that were a second old", hits)
		}
		pass(10 * time.Second)
		if s, lent := b.Stats(), bank.Leased("a", &limit); lent != 0 || s.Leased != 0 || s.Unspent != 0 || s.Spent != 0 {
			t.Errorf("%v lent, %+v", lent, s)
		}
	})
}

// forgetful is a Lender that can lose its data.
type forgetful struct{ bank *leasetest.Bank }

func (f *forgetful) Borrow(ctx context.Context, loan lease.Loan) (lease.Grant, error) {
	return f.bank.Borrow(ctx, loan)
}

// TestTake_StoreForgets proves that a node stops spending leases that the store has lost, once it learns of it.
func TestTake_StoreForgets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limit := compile(t, thousand)
		f := &forgetful{newBank()}
		b := newBorrower(t, lease.Config{Lender: f})
		ask(b, "a", &limit, 500, time.Millisecond)
		f.bank = newBank()
		for range 150 { // an exchange
			b.Take("a", &limit, bucket.Token)
			pass(time.Millisecond)
			if s := b.Stats(); s.Lost > 0 {
				if lent := f.bank.Leased("a", &limit); s.Unspent > lent {
					t.Errorf("%v is held, and %v written down", s.Unspent, lent)
				}
				pass(time.Second)
				return
			}
		}
		t.Error("nothing was given up")
	})
}

// late is a Lender that answers after 20 ms. It has lost its data when loan number loses arrives.
type late struct {
	bank    *leasetest.Bank
	loses   uint64
	missing []uint64 // loans that keep tokens of no entry
}

func (l *late) Borrow(ctx context.Context, loan lease.Loan) (lease.Grant, error) {
	time.Sleep(20 * time.Millisecond)
	if loan.Seq == l.loses {
		l.bank = newBank()
	}
	grant, err := l.bank.Borrow(ctx, loan)
	if loan.Keep > 0 && !grant.Kept {
		l.missing = append(l.missing, loan.Seq)
	}
	return grant, err
}

// TestTake_EntryEndsDuringLoan spends tokens of an entry that has ended when the loan arrives. The node must not report
// them for the new entry, from which the store would return tokens that the node can still spend.
func TestTake_EntryEndsDuringLoan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limit := compile(t, thousand)
		l := &late{bank: newBank(), loses: 8}
		b := newBorrower(t, lease.Config{Lender: l})
		ask(b, "a", &limit, 2000, time.Millisecond)
		if len(l.missing) != 1 || l.missing[0] != l.loses {
			t.Errorf("the store has no entry for loans %d, want loan %d only", l.missing, l.loses)
		}
		if s := b.Stats(); s.Granted != s.Spent+s.Returned+s.Lost+s.Unspent {
			t.Errorf("%+v", s)
		}
		pass(10 * time.Second)
	})
}
