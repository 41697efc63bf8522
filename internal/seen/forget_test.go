// SPDX-License-Identifier: Apache-2.0

package seen_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/seen"
	"github.com/metehq/mete/store"
	"github.com/metehq/mete/storetest"
)

func TestTake_AgainAfterDenyFor(t *testing.T) {
	for _, cost := range []bucket.Tokens{2, 11} { // one that will fit, and one that never does
		s, l := begin(t, seen.Config{DenyFor: 3 * time.Second, DenyKeys: 4}), slow(t)
		s.take(store.Mode{}, 1, charge("k", l, 10))
		s.take(store.Mode{}, 2, charge("k", l, cost))
		if err := s.inner.Reset(t.Context(), []string{"k"}); err != nil { // by another process
			t.Fatal(err)
		}
		s.clock.Advance(3e6 - 1)
		s.take(store.Mode{}, 2, charge("k", l, cost))
		s.take(store.Mode{}, 3, charge("of a later denial", l, 11))
		s.clock.Advance(1)
		if _, allowed := s.take(store.Mode{}, 4, charge("k", l, cost)); allowed != (cost == 2) {
			t.Errorf("a cost of %d after a reset elsewhere: allowed %v", cost, allowed)
		}
	}
}

// An answer that arrives after a later one is still older.
func TestTake_OvertakenAnswer(t *testing.T) {
	s, c := begin(t, seen.Config{DenyFor: 3 * time.Second}), charge("k", slow(t), 10)
	s.take(store.Mode{}, 1, c)
	s.inner.after = func() {
		s.inner.after = nil
		s.clock.Advance(1e6)
		s.take(store.Mode{}, 3, c)
	}
	if _, allowed, err := s.store.Take(t.Context(), nil, []store.Charge{c}, store.Mode{}); allowed || err != nil {
		t.Fatalf("an empty bucket: allowed %v, %v", allowed, err)
	}
	s.clock.Advance(2e6 - 1)
	s.take(store.Mode{}, 3, c)
	s.clock.Advance(1)
	s.take(store.Mode{}, 4, c)
}

func TestRefundAndReset_Forget(t *testing.T) {
	for name, give := range map[string]func(*setup, store.Charge) error{
		"refund": func(s *setup, c store.Charge) error { return s.store.Refund(s.Context(), storetest.Refunds(c), "") },
		"reset":  func(s *setup, c store.Charge) error { return s.store.Reset(s.Context(), []string{c.Key}) },
	} {
		for _, way := range []int64{0, 1} {
			t.Run(fmt.Sprintf("%s, %d µs away", name, way), func(t *testing.T) {
				s, c := begin(t, seen.Config{}), charge("k", slow(t), 10)
				s.take(store.Mode{}, 1, c)
				s.take(store.Mode{}, 2, c)
				if err := give(s, c); err != nil {
					t.Fatal(err)
				}
				if _, allowed := s.take(store.Mode{}, 3, c); !allowed {
					t.Error("denied after the tokens were back")
				}

				// A denial in flight is from before.
				s.clock.Advance(way)
				s.inner.after = func() {
					s.inner.after = nil
					s.clock.Advance(way)
					if err := give(s, c); err != nil {
						t.Error(err)
					}
				}
				if _, allowed := s.take(store.Mode{}, 4, c); allowed {
					t.Error("an empty bucket admitted")
				}
				s.clock.Advance(way)
				if _, allowed := s.take(store.Mode{}, 5, c); !allowed {
					t.Error("a denial of before was remembered")
				}
			})
		}
	}
}

// A failed refund may have reached the store.
func TestRefund_ForgetsWhateverComesOfIt(t *testing.T) {
	s, c := begin(t, seen.Config{}), charge("k", slow(t), 10)
	s.take(store.Mode{}, 1, c)
	s.take(store.Mode{}, 2, c)
	lost := errors.New("the answer was lost")
	s.inner.fail = func() error {
		s.inner.fail = nil
		return errors.Join(lost, s.inner.Store.Refund(t.Context(), storetest.Refunds(c), ""))
	}
	if err := s.store.Refund(t.Context(), storetest.Refunds(c), ""); !errors.Is(err, lost) {
		t.Fatalf("Refund() = %v, want %v", err, lost)
	}
	if _, allowed := s.take(store.Mode{}, 3, c); !allowed {
		t.Error("denied after the tokens were back")
	}
}

// An answer by ID repeats an old state, not the bucket's current one.
func TestTake_AnswersOfIDsAreOld(t *testing.T) {
	s, l := begin(t, seen.Config{DenyFor: time.Hour}), slow(t)
	s.take(store.Mode{ID: "x"}, 1, charge("k", l, 10))
	s.clock.Advance(60e6)
	s.take(store.Mode{}, 2, charge("k", l, 10))
	s.take(store.Mode{}, 2, charge("k", l, 10))
	s.take(store.Mode{ID: "x"}, 3, charge("k", l, 10))
	if snaps, allowed := s.take(store.Mode{}, 4, charge("k", l, 6)); !allowed {
		t.Errorf("denied by what an ID's take was answered: %+v", snaps)
	}
}
