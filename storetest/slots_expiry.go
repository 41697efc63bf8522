// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/store"
)

// A slotChange is an instant from which a slot is certainly held, or no longer.
type slotChange struct {
	at   bucket.Instant
	more int // 1 or -1
}

// checkSlotExpiry races for slots while the clock passes their leases. A slot is certainly held from the answer to its take
// until one lease after the last admitted call, or until its release begins. At no instant more slots than the limit are.
func checkSlotExpiry(t *testing.T, open Open) {
	const most, lease = 3, 10 * time.Millisecond
	s, l := newSubject(t, open), slotLimit(t, most, lease)
	var number, renewed atomic.Int64
	var mu sync.Mutex
	var changes []slotChange
	race(func(r *rand.Rand) {
		for range laps / 4 {
			charges := []store.Charge{slotOf("k", l, int(number.Add(1)))}
			s.clock.Advance(r.Int64N(2000))
			before := s.clock.Now()
			_, allowed, err := s.store.Take(t.Context(), nil, charges, mete.Mode{})
			if err != nil {
				t.Error(err)
				return
			}
			if !allowed {
				continue
			}
			from, until := s.clock.Now(), before.Add(lease)
			if r.IntN(2) == 0 {
				s.clock.Advance(r.Int64N(5000))
				before = s.clock.Now()
				if _, again, err := s.store.Take(t.Context(), nil, charges, mete.Mode{Renew: true}); err != nil {
					t.Error(err)
				} else if again {
					renewed.Add(1)
					until = before.Add(lease)
				}
			}
			if r.IntN(2) == 0 {
				until = min(until, s.clock.Now())
				if err := s.store.Refund(t.Context(), Refunds(charges...), ""); err != nil {
					t.Error(err)
				}
			}
			if from < until {
				mu.Lock()
				changes = append(changes, slotChange{from, 1}, slotChange{until, -1})
				mu.Unlock()
			}
		}
	})
	slices.SortFunc(changes, func(a, b slotChange) int { return cmp.Or(cmp.Compare(a.at, b.at), a.more-b.more) })
	held := 0
	for _, c := range changes {
		if held += c.more; held > most {
			t.Fatalf("at %d, %d slots of %d are held", c.at, held, most)
		}
	}
	if len(changes) == 0 || renewed.Load() == 0 {
		t.Errorf("%d changes and %d renewals: the run means nothing", len(changes), renewed.Load())
	}
	s.clock.Advance(lease.Microseconds())
	s.assertHeld("k", l, 0)
}
