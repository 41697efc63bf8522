// SPDX-License-Identifier: Apache-2.0

package seen_test

import (
	"testing"
	"time"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/seen"
	"github.com/metehq/mete/store"
)

// For sliding logs and leased buckets, only the answer itself is known.
func TestTake_WhatIsNotInASnapshot(t *testing.T) {
	log := compile(t, bucket.Spec{Algorithm: bucket.AlgorithmSlidingLog, Rate: bucket.Rate{Tokens: 10 * bucket.Token, Per: time.Minute}})
	for name, leased := range map[string]bool{"sliding log": false, "leased": true} {
		l := log
		if leased {
			l = slow(t)
		}
		ask := func(cost bucket.Tokens) store.Charge {
			c := charge("k", l, cost)
			c.Leased = leased
			return c
		}
		for _, tt := range []struct {
			what   string
			charge store.Charge
			asked  int64
			wait   time.Duration
		}{
			{"the same cost", ask(5), 3, 49 * time.Second},
			{"a higher cost", ask(6), 4, 0},
			{"a lower cost", ask(4), 4, 0},
			{"a cost that is there", ask(2), 4, 0},
			{"a cost that never fits", ask(11), 3, bucket.Never},
		} {
			for _, exact := range []bool{false, true} {
				s := begin(t, seen.Config{DenyFor: time.Hour, DenyExactly: exact})
				s.take(store.Mode{}, 1, ask(4))
				s.clock.Advance(1e6)
				s.take(store.Mode{}, 2, ask(4))
				s.take(store.Mode{}, 3, ask(5))
				s.clock.Advance(10e6)
				asked := tt.asked
				if exact {
					asked = 4
				}
				if snaps, _ := s.take(store.Mode{}, asked, tt.charge); asked == 3 && !leased && snaps[0].RetryAfter != tt.wait {
					t.Errorf("%s, %s: %+v, want to wait for %v", name, tt.what, snaps, tt.wait)
				}
			}
		}
	}
}

// Next to a denying bucket they are shown as last seen.
func TestTake_WhatIsNotInASnapshotBesideADenial(t *testing.T) {
	log := compile(t, bucket.Spec{Algorithm: bucket.AlgorithmSlidingLog, Rate: bucket.Rate{Tokens: 10 * bucket.Token, Per: time.Minute}})
	s, l := begin(t, seen.Config{}), slow(t)
	both := []store.Charge{charge("everyone", log, 2), charge("user", l, 10)}
	s.take(store.Mode{}, 1, both...)
	s.take(store.Mode{}, 2, both...)
	snaps, allowed := s.take(store.Mode{}, 2, both...)
	if allowed || !snaps[0].Allowed || snaps[0].Remaining() != 8*bucket.Token || snaps[1].RetryAfter != 100*time.Second {
		t.Errorf("allowed %v, %+v", allowed, snaps)
	}
	both[0].Cost = 9 * bucket.Token // whether that fits, and when, is not known
	s.take(store.Mode{}, 3, both...)
}

// The answer to a reservation has another wait than the answer to a take.
func TestTake_AfterAReservation(t *testing.T) {
	s, c := begin(t, seen.Config{}), charge("k", slow(t), 4)
	c.Leased = true
	s.take(store.Mode{}, 1, charge("k", slow(t), 10))
	s.take(store.Mode{}, 2, c)
	s.take(store.Mode{MaxWait: 10 * time.Second}, 3, c)
	if snaps, allowed := s.take(store.Mode{}, 3, c); allowed || snaps[0].RetryAfter != 40*time.Second {
		t.Errorf("allowed %v, %+v; want to wait for 40 s", allowed, snaps)
	}
}
