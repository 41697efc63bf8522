// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/lease"
	"github.com/metehq/mete/internal/testseed"
	"github.com/metehq/mete/store"
	"github.com/metehq/mete/storetest"
)

// A leasedWork is work that a leasing store has admitted, by the instant of its start.
type leasedWork struct {
	t     *testing.T
	clock *storetest.Clock
	start []bucket.Instant
	cost  []bucket.Tokens
}

func (w *leasedWork) add(cost bucket.Tokens) (number int) {
	w.start, w.cost = append(w.start, w.clock.Now()), append(w.cost, cost)
	return len(w.cost) - 1
}

// check reports an interval in which more work started than a bucket of ten tokens that refills one per second allows.
func (w *leasedWork) check() {
	w.t.Helper()
	level := int64(0) // microseconds until the missing tokens have refilled
	for i, cost := range w.cost {
		if i > 0 {
			level = max(level-int64(w.start[i]-w.start[i-1]), 0)
		}
		if level += int64(cost) * 1_000_000 / int64(bucket.Token); level > 10_001_000 {
			w.t.Fatalf("piece %d of %v: work of %d µs of refill starts, and the bucket has 10 s", i, w.cost, level)
		}
	}
}

// TestLending_AfterAHold leases the tokens that a hold has left, and refilled ones. The settlement must not return the
// refilled ones again.
func TestLending_AfterAHold(t *testing.T) {
	clock := storetest.NewClock()
	s, charge, _ := newLeasingStore(t, Config{Now: clock.Now})
	hold := store.Hold{ID: "0123456789abcdef", TTL: time.Hour, Terms: make([]store.Terms, 1)}
	if _, id, err := s.Hold(t.Context(), nil, charge(5*bucket.Token), mete.Mode{}, hold); err != nil || id == "" {
		t.Fatalf("hold %q, %v", id, err)
	}
	clock.Advance(5_000_000)
	limit := charge(0)[0].Limit
	for _, loan := range []lease.Loan{{Seq: 1, Want: 5 * bucket.Token}, {Seq: 2, Spent: 5 * bucket.Token}} { // borrows 5 and spends them
		loan.Key, loan.Limit, loan.Holder, loan.TTL = "k", limit, "h", time.Minute
		if g, err := (lender{s}).Borrow(t.Context(), loan); err != nil || g.Tokens != loan.Want {
			t.Fatalf("loan %d: got %v, %v", loan.Seq, g.Tokens, err)
		}
	}
	if _, err := s.Settle(t.Context(), hold.ID, 0); err != nil {
		t.Fatal(err)
	}
	snaps, _, err := s.Take(t.Context(), nil, charge(0), mete.Mode{DryRun: true})
	if err != nil || snaps[0].Remaining() != 5*bucket.Token {
		t.Errorf("%v remain after 5 were leased and spent, %v; want 5", snaps[0].Remaining(), err)
	}
}

// TestLending_WithHolds takes, holds, borrows and cancels in a random order. The work that starts must never exceed the bound.
func TestLending_WithHolds(t *testing.T) {
	clock := storetest.NewClock()
	s, charge, _ := newLeasingStore(t, Config{Now: clock.Now})
	limit := charge(0)[0].Limit
	for seed := range uint64(100) {
		r := rand.New(testseed.PCG(seed, 41))
		w := &leasedWork{t: t, clock: clock}
		key := fmt.Sprint("k", seed)
		charges := func(cost bucket.Tokens) []store.Charge {
			return []store.Charge{{Key: key, Limit: limit, Cost: cost, Leased: true}}
		}
		type settled struct {
			id     string // of a hold
			refund mete.Refund
			work   int
			cost   bucket.Tokens
		}
		var open []settled
		var spent, purse bucket.Tokens // of the lease
		var ends bucket.Instant
		returned := 0
		for step := range 200 {
			clock.Advance(r.Int64N(1 + r.Int64N([]int64{1, 1_000_000, 4_000_000, 20_000_000}[r.IntN(4)])))
			cost := bucket.Tokens(1+r.Int64N(6)) * bucket.Token
			if clock.Now() >= ends {
				purse = 0
			}
			switch r.IntN(6) {
			case 0:
				hold := store.Hold{ID: fmt.Sprintf("%016d", 1000*seed+uint64(step)), TTL: time.Duration(1+r.Int64N(20)) * time.Second, Terms: make([]store.Terms, 1)}
				if _, id, err := s.Hold(t.Context(), nil, charges(cost), mete.Mode{}, hold); err != nil {
					t.Fatal(err)
				} else if id != "" {
					open = append(open, settled{id: id, work: w.add(cost), cost: cost})
				}
			case 1: // a take that awaits its settlement
				c := charges(cost)
				c[0].Await = time.Duration(1+r.Int64N(20)) * time.Second
				snaps, allowed, err := s.Take(t.Context(), nil, c, mete.Mode{})
				if err != nil {
					t.Fatal(err)
				}
				if allowed {
					open = append(open, settled{refund: mete.Refund{Charge: c[0], Taken: snaps[0].Taken()}, work: w.add(cost), cost: cost})
				}
			case 2:
				want := bucket.Tokens(r.Int64N(6)) * bucket.Token
				loan := lease.Loan{Key: key, Limit: limit, Holder: "h", Seq: uint64(step + 1), Spent: spent, Keep: purse, Want: want, TTL: time.Duration(1+r.Int64N(5)) * time.Second}
				g, err := lender{s}.Borrow(t.Context(), loan)
				if err != nil {
					t.Fatal(err)
				}
				if !g.Kept {
					purse = 0
				}
				purse += g.Tokens
				ends = clock.Now().Add(loan.TTL)
			case 3:
				if n := min(purse, cost); n > 0 {
					purse, spent = purse-n, spent+n
					w.add(n)
				}
			case 4:
				if _, allowed, err := s.Take(t.Context(), nil, charges(cost), mete.Mode{}); err != nil {
					t.Fatal(err)
				} else if allowed {
					w.add(cost)
				}
			case 5:
				if len(open) == 0 {
					continue
				}
				i := r.IntN(len(open))
				o := open[i]
				open = slices.Delete(open, i, i+1)
				used := bucket.Tokens(r.Int64N(int64(o.cost)/int64(bucket.Token)+1)) * bucket.Token
				if o.id != "" {
					if status, err := s.Settle(t.Context(), o.id, used); err != nil || status.State != store.HoldSettled {
						continue // it has expired, and its work has its full cost
					}
				} else if used < o.cost {
					o.refund.Cost = o.cost - used
					if err := s.Refund(t.Context(), []mete.Refund{o.refund}, ""); err != nil {
						t.Fatal(err)
					}
				}
				w.cost[o.work] = used
				returned++
			}
			w.check()
		}
		if returned < 5 || len(w.cost) < 40 {
			t.Errorf("seed %d: %d pieces of work, %d of them settled", seed, len(w.cost), returned)
		}
	}
}
