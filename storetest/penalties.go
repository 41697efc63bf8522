// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/testseed"
	"github.com/metehq/mete/store"
)

func penalty(t testing.TB, first, most time.Duration, factor bucket.Tokens) *bucket.Penalty {
	t.Helper()
	p, err := bucket.NewPenalty(first, most, factor)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// asks takes and compares the wait with want: 0 is an admission.
func (s *subject) asks(mode mete.Mode, want time.Duration, level int64, charges ...store.Charge) {
	s.Helper()
	snaps, allowed := s.take(mode, charges...)
	if allowed != (want == 0) || snaps[0].RetryAfter != want {
		s.Errorf("at %d: allowed %v, wait %v; want %v", s.clock.Now()-start, allowed, snaps[0].RetryAfter, want)
	}
	if _, got := snaps[0].Penalty(); got != level {
		s.Errorf("at %d: level %d, want %d", s.clock.Now()-start, got, level)
	}
}

// checkPenalty: a penalty begins with a denial, keeps its end, and the wait is exact.
func checkPenalty(t *testing.T, open Open) {
	s, l := newSubject(t, open), limit(t, 2*bucket.Token, "1/1s")
	c := store.Charge{Key: "k", Limit: l, Cost: bucket.Token, Penalty: penalty(t, time.Minute, time.Minute, bucket.Token)}
	take, look := mete.Mode{}, mete.Mode{DryRun: true}
	s.asks(take, 0, 0, c)
	s.asks(take, 0, 0, c)
	s.asks(look, time.Second, 0, c) // starts nothing
	never := c
	never.Cost = 3 * bucket.Token
	s.asks(take, bucket.Never, 0, never)
	s.asks(mete.Mode{MaxWait: time.Millisecond}, 999*time.Millisecond, 0, c)
	free := c
	free.Cost = 0
	s.asks(take, 0, 0, free)
	s.asks(take, time.Minute, 1, c)
	s.clock.Advance(30_000_000)
	s.asks(take, 30*time.Second, 1, c)
	s.asks(look, 30*time.Second, 1, c)
	s.asks(take, bucket.Never, 1, never)
	s.asks(take, 30*time.Second, 1, free)
	s.asks(mete.Mode{MaxWait: time.Hour}, 30*time.Second, 1, c)
	s.asks(mete.Mode{UpTo: true}, 30*time.Second, 1, c)
	without := c
	without.Penalty = nil
	s.asks(take, 0, 0, without)
	s.asks(mete.Mode{MaxWait: bucket.Forced}, 0, 0, c)
	s.clock.Advance(29_999_999)
	s.asks(take, time.Microsecond, 1, c)
	s.clock.Advance(1)
	s.asks(take, 0, 0, c)
	if err := s.store.Refund(t.Context(), Refunds(c), ""); err != nil {
		t.Fatal(err)
	}
	s.asks(take, 0, 0, c)
	s.asks(take, 0, 0, c)
	s.asks(take, time.Minute, 1, c)
	if err := s.store.Refund(t.Context(), Refunds(c), ""); err != nil {
		t.Fatal(err)
	}
	s.asks(take, time.Minute, 1, c) // a refund does not end it
	if err := s.store.Reset(t.Context(), []string{"k"}); err != nil {
		t.Fatal(err)
	}
	s.asks(take, 0, 0, c)
}

// checkPenaltyWait: the wait covers both the penalty and the tokens that are missing after it.
func checkPenaltyWait(t *testing.T, open Open) {
	s, l := newSubject(t, open), limit(t, 10*bucket.Token, "1/1m")
	c := store.Charge{Key: "k", Limit: l, Cost: 10 * bucket.Token, Penalty: penalty(t, time.Second, time.Second, bucket.Token)}
	s.asks(mete.Mode{}, 0, 0, c)
	s.asks(mete.Mode{}, 10*time.Minute, 1, c)
	s.clock.Advance(1_000_000)
	s.asks(mete.Mode{DryRun: true}, 10*time.Minute-time.Second, 0, c)
	s.clock.Advance(599_000_000)
	s.asks(mete.Mode{}, 0, 0, c)
}

// checkGrowingPenalty: a penalty grows up to its longest length, and starts over after a quiet time of that length.
func checkGrowingPenalty(t *testing.T, open Open) {
	s, l := newSubject(t, open), limit(t, bucket.Token, "1/1s")
	c := store.Charge{Key: "k", Limit: l, Cost: bucket.Token, Penalty: penalty(t, time.Minute, 5*time.Minute, 2500)}
	end := func(after time.Duration) { s.clock.Advance(after.Microseconds()) }
	for level, length := range []time.Duration{time.Minute, 150 * time.Second, 5 * time.Minute, 5 * time.Minute} {
		s.asks(mete.Mode{}, 0, 0, c)
		s.asks(mete.Mode{}, length, int64(level)+1, c)
		end(length)
	}
	end(5*time.Minute - 2*time.Microsecond)
	s.asks(mete.Mode{}, 0, 0, c)
	end(time.Microsecond)
	s.asks(mete.Mode{}, 5*time.Minute, 5, c) // one microsecond before it starts over
	end(10 * time.Minute)
	s.asks(mete.Mode{}, 0, 0, c)
	s.asks(mete.Mode{}, time.Minute, 1, c)

	// Another policy: the penalty keeps its end, and the next one grows from its length.
	c.Penalty = penalty(t, time.Second, time.Hour, 10*bucket.Token)
	s.asks(mete.Mode{}, time.Minute, 1, c)
	end(time.Minute)
	s.asks(mete.Mode{}, 0, 0, c)
	s.asks(mete.Mode{}, 10*time.Minute, 2, c)
}

// checkPenaltyOfSeveral: only the limits that deny have a penalty, all of them.
func checkPenaltyOfSeveral(t *testing.T, open Open) {
	s, p := newSubject(t, open), penalty(t, time.Minute, time.Minute, bucket.Token)
	small, big := limit(t, bucket.Token, "1/1s"), limit(t, 5*bucket.Token, "1/1s")
	all := []store.Charge{
		{Key: "a", Limit: small, Cost: bucket.Token, Penalty: p},
		{Key: "b", Limit: big, Cost: bucket.Token, Penalty: p},
		{Key: "c", Limit: small, Cost: bucket.Token, Penalty: p},
		{Key: "d", Limit: small, Cost: bucket.Token},
	}
	s.take(mete.Mode{}, all...)
	snaps, allowed := s.take(mete.Mode{}, all...)
	want := []time.Duration{time.Minute, 0, time.Minute, time.Second}
	for i, snap := range snaps {
		if allowed || snap.RetryAfter != want[i] {
			t.Errorf("charge %d: wait %v, want %v", i, snap.RetryAfter, want[i])
		}
	}
	s.asks(mete.Mode{}, 0, 0, all[1])
	s.clock.Advance(1_000_000)
	s.asks(mete.Mode{}, 59*time.Second, 1, all[0])
	s.asks(mete.Mode{}, 59*time.Second, 1, all[2])
	s.asks(mete.Mode{}, 0, 0, all[3])
	// A limit that denies only because of another one's penalty has none.
	s.asks(mete.Mode{}, 59*time.Second, 1, all[0], all[1])
	s.asks(mete.Mode{}, 0, 0, all[1])
}

// checkPenaltyID: a retry of an admitted take gets its answer, also during a later penalty.
func checkPenaltyID(t *testing.T, open Open) {
	s, l := newSubject(t, open), limit(t, bucket.Token, "1/1s")
	c := store.Charge{Key: "k", Limit: l, Cost: bucket.Token, Penalty: penalty(t, time.Minute, time.Minute, bucket.Token)}
	s.asks(mete.Mode{ID: "first"}, 0, 0, c)
	s.asks(mete.Mode{ID: "second"}, time.Minute, 1, c)
	s.clock.Advance(2_000_000)
	s.asks(mete.Mode{ID: "first"}, 0, 0, c)
	s.asks(mete.Mode{ID: "second"}, 58*time.Second, 1, c)
	s.clock.Advance(58_000_000)
	s.asks(mete.Mode{ID: "second"}, 0, 0, c)
}

// checkPenaltyOfEveryAlgorithm: one microsecond before the wait a lone client is denied, and then it is admitted.
func checkPenaltyOfEveryAlgorithm(t *testing.T, open Open) {
	for name, l := range limitKinds(t) {
		for _, length := range []time.Duration{time.Millisecond, 4 * time.Second, time.Minute} {
			t.Run(fmt.Sprint(name, " ", length), func(t *testing.T) {
				s := newSubject(t, open)
				c := store.Charge{Key: name, Limit: l, Cost: 3 * bucket.Token, Penalty: penalty(t, length, 4*length, 2*bucket.Token)}
				for range 5 {
					for {
						if _, allowed := s.take(mete.Mode{}, c); !allowed {
							break
						}
					}
					snaps, _ := s.take(mete.Mode{}, c)
					wait := snaps[0].RetryAfter.Microseconds()
					s.clock.Advance(wait - 1)
					if _, allowed := s.take(mete.Mode{DryRun: true}, c); allowed {
						t.Fatal("admitted a microsecond early")
					}
					s.clock.Advance(1)
					if _, allowed := s.take(mete.Mode{}, c); !allowed {
						t.Fatal("denied after the wait")
					}
				}
			})
		}
	}
}

// checkPenaltyModel compares random histories with the model. singly uses one bucket at a time.
func checkPenaltyModel(t *testing.T, open Open) { comparePenalties(t, open, 4) }

func checkPenaltyModelSingly(t *testing.T, open Open) { comparePenalties(t, open, 1) }

func comparePenalties(t *testing.T, open Open, buckets int) {
	for seed := range seedsOf(6) {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			s := newSubject(t, open)
			model := NewModel(s.clock.Now)
			r := rand.New(testseed.PCG(seed, 22))
			limits := randomLimits(t, r)
			var penalties []*bucket.Penalty
			for range 4 {
				first := time.Millisecond + time.Duration(r.Int64N(1<<(1+r.IntN(24))))*time.Microsecond
				factor := bucket.Token + bucket.Tokens(r.Int64N(1<<(1+r.IntN(12))))
				penalties = append(penalties, penalty(t, first, first*time.Duration(1+r.IntN(20)), factor))
			}
			for step := range 400 {
				s.clock.Set(randomInstant(r, s.clock.Now()))
				charges := randomCharges(r, limits, buckets)
				for i := range charges {
					if p := r.IntN(len(penalties) + 1); p < len(penalties) {
						charges[i].Penalty = penalties[p]
					}
				}
				if !sameStep(s, model, r, charges) {
					t.Fatalf("the store differs from the model in step %d of seed %d", step, seed)
				}
			}
		})
	}
}

// checkConcurrentPenalty: parallel denials start one penalty.
func checkConcurrentPenalty(t *testing.T, open Open) {
	s, l := newSubject(t, open), limit(t, 5*bucket.Token, "1/1h")
	c := store.Charge{Key: "k", Limit: l, Cost: bucket.Token, Penalty: penalty(t, time.Minute, time.Hour, 2*bucket.Token)}
	var admitted atomic.Int64
	var wrong sync.Map
	for round := range int64(3) {
		var wg sync.WaitGroup
		for range 64 {
			wg.Go(func() {
				snaps, allowed, err := s.store.Take(t.Context(), nil, []store.Charge{c}, mete.Mode{})
				switch {
				case err != nil:
					t.Error(err)
				case allowed:
					admitted.Add(1)
				default:
					if left, level := snaps[0].Penalty(); level != round+1 || left != time.Minute<<round {
						wrong.Store(fmt.Sprint(left, level), true)
					}
				}
			})
		}
		wg.Wait()
		s.clock.Advance((time.Minute << round).Microseconds())
	}
	wrong.Range(func(k, _ any) bool { t.Errorf("a denial shows another penalty: %v", k); return true })
	if admitted.Load() != 5 {
		t.Errorf("admitted %d of 5 tokens", admitted.Load())
	}
}

// checkPenaltyOfFamily: a reset of a whole rule ends its penalties.
func checkPenaltyOfFamily(t *testing.T, open Open) {
	s, l := newSubject(t, open), limit(t, bucket.Token, "1/1s")
	clearer, ok := store.As[store.Clearer](s.store)
	if !ok {
		t.Fatal("the store cannot clear families")
	}
	p := penalty(t, time.Minute, time.Minute, bucket.Token)
	var charges []store.Charge
	for _, key := range []string{"login:user=a", "login:user=b", "other:user=a"} {
		charges = append(charges, store.Charge{Key: key, Limit: l, Cost: bucket.Token, Penalty: p})
	}
	s.take(mete.Mode{}, charges...)
	s.take(mete.Mode{}, charges...)
	for from := ""; ; {
		_, next, err := clearer.ClearFamilies(t.Context(), []string{"login:"}, from)
		if err != nil {
			t.Fatal(err)
		}
		if from = next; next == "" {
			break
		}
	}
	s.asks(mete.Mode{}, 0, 0, charges[0])
	s.asks(mete.Mode{}, 0, 0, charges[1])
	s.asks(mete.Mode{}, time.Minute, 1, charges[2])
}

var penaltyRules = []rule{
	{name: "a denial starts a penalty", check: checkPenalty},
	{name: "a wait covers the penalty and the tokens", check: checkPenaltyWait},
	{name: "a penalty grows and starts over", check: checkGrowingPenalty},
	{name: "every denying limit starts its penalty", check: checkPenaltyOfSeveral},
	{name: "an ID is charged once during a penalty", check: checkPenaltyID},
	{name: "the wait of a penalty is exact under every algorithm", check: checkPenaltyOfEveryAlgorithm},
	{name: "penalties agree with the model", check: checkPenaltyModel, oneStep: true},
	{name: "the denial of a slot starts no penalty", check: checkSlotPenalty},
	{name: "parallel denials start one penalty", check: checkConcurrentPenalty},
	{name: "a cleared family has no penalties", check: checkPenaltyOfFamily},
}

// RunPenalties tests the penalties of the stores that open returns: see [store.Charge]. [Run] does not.
func RunPenalties(t *testing.T, open Open) {
	for _, r := range slices.Clone(penaltyRules) {
		t.Run(r.name, func(t *testing.T) { r.check(t, open) })
	}
}

// RunPenaltiesInParts is [RunPenalties] for the stores of [RunInParts].
func RunPenaltiesInParts(t *testing.T, open Open) {
	for _, r := range penaltyRules {
		if r.oneStep {
			r.check = checkPenaltyModelSingly
		}
		t.Run(r.name, func(t *testing.T) { r.check(t, open) })
	}
}
