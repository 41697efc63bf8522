// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/store"
)

// checkCalendarHolds is checkHoldModel with calendar limits among the limits. The holds last up to a week, and the
// clock moves by hours to years, to both sides of the starts of windows.
func checkCalendarHolds(t *testing.T, open Open) { compareHolds(t, open, 4, seedsOf(12), longHolds) }

// checkCalendarHoldsSingly uses one bucket at a time.
func checkCalendarHoldsSingly(t *testing.T, open Open) {
	compareHolds(t, open, 1, seedsOf(12), longHolds)
}

var longHolds = holdTiming{
	limits: randomCalendars,
	next:   randomHoldInstant,
	ttl: func(r *rand.Rand) time.Duration {
		return time.Duration(1000+r.Int64N(store.MaxHoldTTL.Microseconds()-1000)) * time.Microsecond
	},
	begin:   bucket.At(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)),
	refunds: true,
	stream:  8,
}

// randomHoldInstant is randomCalendarInstant with few steps beyond the longest hold.
func randomHoldInstant(r *rand.Rand, now bucket.Instant, limits []bucket.Limit) bucket.Instant {
	next := randomCalendarInstant(r, now, limits)
	if next > now.Add(store.MaxHoldTTL) && r.IntN(8) > 0 {
		return now.Add(time.Duration(r.Int64N(int64(time.Hour))))
	}
	return next
}

// checkMidnight settles holds of a daily budget before and after midnight, and lets others expire.
func checkMidnight(t *testing.T, open Open) {
	s := newSubject(t, open)
	c := bucket.Calendar{Window: bucket.CalendarDay, Zone: "Europe/Berlin"}
	l := compile(t, bucket.Spec{
		Algorithm: bucket.AlgorithmStepped, Anchor: bucket.AnchorCalendar, Calendar: c,
		Rate: bucket.Rate{Tokens: 10 * bucket.Token, Per: c.Window.Length()}, Capacity: 10 * bucket.Token,
	})
	midnight := bucket.At(time.Date(2026, 3, 28, 23, 0, 0, 0, time.UTC)) // the day has 23 hours
	s.clock.Set(midnight - 3_600_000_000)
	hold := func(i int, ttl time.Duration, cost bucket.Tokens) string {
		_, id := s.hold(store.Hold{ID: holdID(i), TTL: ttl, Refund: true}, mete.Mode{}, charge("k", l, cost))
		return id
	}
	before, after := hold(1, 2*time.Hour, 4*bucket.Token), hold(2, 2*time.Hour, 5*bucket.Token)
	hold(3, 30*time.Minute, bucket.Token)
	s.clock.Set(midnight - 1)
	s.assertRemaining("k", l, bucket.Token)
	s.assertState(s.settle(before, bucket.Token), store.HoldSettled, true)
	s.assertRemaining("k", l, 4*bucket.Token)
	s.clock.Set(midnight)
	_, today := s.hold(store.Hold{ID: holdID(4), TTL: 30 * time.Hour}, mete.Mode{}, charge("k", l, 6*bucket.Token))
	s.assertState(s.settle(after, 0), store.HoldSettled, true)
	s.assertRemaining("k", l, 4*bucket.Token)
	hold(5, 22*time.Hour, 3*bucket.Token)
	hold(6, 24*time.Hour, bucket.Token)
	s.assertState(s.settle(today, 7*bucket.Token), store.HoldSettled, true)
	assertDebt := func(want bucket.Tokens) {
		t.Helper()
		if snaps, _ := s.take(mete.Mode{DryRun: true}, charge("k", l, 0)); snaps[0].Debt() != want {
			t.Errorf("the debt is %v, want %v", snaps[0].Debt(), want)
		}
	}
	assertDebt(bucket.Token)
	s.clock.Set(midnight.Add(23*time.Hour) - 1) // hold 5 has expired, and all of it has returned: nothing waits
	assertDebt(0)
	s.assertRemaining("k", l, 2*bucket.Token)
	s.clock.Set(midnight.Add(24*time.Hour) - 1)
	s.take(mete.Mode{}, charge("k", l, 4*bucket.Token))
	s.clock.Set(midnight.Add(24 * time.Hour)) // hold 6 has expired, an hour after the next midnight
	s.assertRemaining("k", l, 6*bucket.Token)
	hold(7, time.Hour, 6*bucket.Token)
	s.clock.Advance(4 * 366 * day) // more windows than a call can carry
	s.assertRemaining("k", l, 10*bucket.Token)
}
