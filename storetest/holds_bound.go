// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"errors"
	"math/rand/v2"
	"sync/atomic"
	"testing"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/store"
)

func checkHoldBound(t *testing.T, open Open) {
	s, l := newSubject(t, open), limit(t, 1_000_000*bucket.Token, "1/1h")
	var number, made atomic.Int64
	hold := func() error {
		h := minuteHold(int(number.Add(1)))
		h.Terms = make([]store.Terms, 1)
		_, _, err := s.holder().Hold(t.Context(), nil, []store.Charge{charge("a", l, bucket.Token)}, mete.Mode{}, h)
		return err
	}
	race(func(*rand.Rand) {
		for range bucket.MaxHolds / racers {
			if err := hold(); err != nil {
				t.Error(err)
				return
			}
			made.Add(1)
		}
	})
	if err := hold(); !errors.Is(err, store.ErrTooManyHolds) || store.Spent(err) != store.NotSpent {
		t.Errorf("hold %d: error %v, want it refused", made.Load()+1, err)
	}
	s.assertRemaining("a", l, (1_000_000-bucket.MaxHolds)*bucket.Token)
}
