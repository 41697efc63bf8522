// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/testseed"
	"github.com/metehq/mete/store"
)

func checkCalendars(t *testing.T, open Open)        { compareCalendars(t, open, 4, seedsOf(12)) }
func checkCalendarsBriefly(t *testing.T, open Open) { compareCalendars(t, open, 4, 2) }
func checkCalendarsSingly(t *testing.T, open Open)  { compareCalendars(t, open, 1, seedsOf(12)) }

// compareCalendars compares the store with the model for calendar limits and their changes to limits of other kinds. The
// clock moves by hours to years, to both sides of the starts of windows, and back.
func compareCalendars(t *testing.T, open Open, buckets int, seeds uint64) {
	for seed := range seeds {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			s := newSubject(t, open)
			model := NewModel(s.clock.Now)
			r := rand.New(testseed.PCG(seed, 11))
			limits := randomCalendars(t, r)
			begin := bucket.At(time.Date(2025+r.IntN(10), 1, 1, 0, 0, 0, 0, time.UTC))
			s.clock.Set(begin)
			var charges []store.Charge
			for step := range 200 {
				s.clock.Set(max(randomCalendarInstant(r, s.clock.Now(), limits), begin-bucket.Instant(366*day)))
				if step == 0 || r.IntN(5) > 0 {
					charges = randomCharges(r, limits, buckets)
				}
				if !sameStep(s, model, r, charges) {
					t.Fatalf("the store differs from the model in step %d of seed %d", step, seed)
				}
			}
		})
	}
}

const day = 86_400_000_000 // microseconds

// randomCalendars returns eight calendar limits, and four other limits.
func randomCalendars(t *testing.T, r *rand.Rand) []bucket.Limit {
	t.Helper()
	zones := []string{"UTC", "Europe/Berlin", "America/New_York", "Asia/Kathmandu", "Africa/Casablanca", "Australia/Lord_Howe", "Pacific/Apia"}
	var limits []bucket.Limit
	for len(limits) < 8 {
		c := bucket.Calendar{
			Window: bucket.CalendarWindow(1 + r.IntN(4)), Zone: zones[r.IntN(len(zones))],
			Start: time.Duration(r.IntN(2)*r.IntN(24*60)) * time.Minute,
		}
		if c.Window == bucket.CalendarWeek || c.Window == bucket.CalendarMonth {
			c.Day = 1 + r.IntN(7)
		}
		tokens := bucket.Tokens(1 + r.Int64N(20_000))
		spec := bucket.Spec{
			Algorithm: bucket.AlgorithmStepped, Anchor: bucket.AnchorCalendar, Calendar: c,
			Rate: bucket.Rate{Tokens: tokens, Per: c.Window.Length()}, Capacity: tokens,
		}
		if r.IntN(2) == 0 {
			spec.Capacity = 1 + bucket.Tokens(r.Int64N(int64(20*tokens)))
		}
		switch owed := bucket.Tokens(r.Int64N(int64(3 * tokens))); r.IntN(3) {
		case 0:
			spec.MaxReserved = &owed
		case 1:
			spec.Queue = 1 + owed
		}
		limits = append(limits, compile(t, spec))
	}
	for kind := range 4 {
		for {
			if l, _, err := randomSpec(r, []int{0, 3, 4, 5}[kind]).Compile(); err == nil {
				limits = append(limits, l)
				break
			}
		}
	}
	r.Shuffle(len(limits), func(i, j int) { limits[i], limits[j] = limits[j], limits[i] })
	return limits
}

func compile(t testing.TB, spec bucket.Spec) bucket.Limit {
	t.Helper()
	l, _, err := spec.Compile()
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func randomCalendarInstant(r *rand.Rand, now bucket.Instant, limits []bucket.Limit) bucket.Instant {
	switch r.IntN(12) {
	case 0:
		return now - bucket.Instant(r.Int64N(3*day))
	case 1:
		return now - bucket.Instant(r.Int64N(60_000_000))
	case 2, 3:
		return now
	case 4, 5, 6: // the end of a window, or the microsecond before
		l := &limits[r.IntN(len(limits))]
		_, end := l.Window(now)
		return end - bucket.Instant(r.IntN(2))
	case 7:
		return now + bucket.Instant(r.Int64N(400*day))
	case 8, 9:
		return now + bucket.Instant(r.Int64N(3*day))
	}
	return now + bucket.Instant(r.Int64N(3_600_000_000))
}

// checkCalendarConservation races for a calendar limit with rollover while the clock passes midnight seven times, among them
// a day of 23 hours.
func checkCalendarConservation(t *testing.T, open Open) {
	s := newSubject(t, open)
	c := bucket.Calendar{Window: bucket.CalendarDay, Zone: "Europe/Berlin"}
	l := compile(t, bucket.Spec{
		Algorithm: bucket.AlgorithmStepped, Anchor: bucket.AnchorCalendar, Calendar: c,
		Rate: bucket.Rate{Tokens: 30 * bucket.Token, Per: c.Window.Length()}, Capacity: 100 * bucket.Token,
	})
	begin := bucket.At(time.Date(2026, 3, 26, 22, 30, 0, 0, time.UTC)) // half an hour before midnight
	s.clock.Set(begin)
	var admitted atomic.Int64
	s.take(mete.Mode{}, store.Charge{Key: "k", Limit: l, Cost: l.Capacity()}) // never full again
	race(func(r *rand.Rand) {
		for range laps {
			s.clock.Advance(r.Int64N(2 * 6 * day / racers / laps))
			cost := bucket.Tokens(1 + r.Int64N(2000))
			_, allowed, err := s.store.Take(t.Context(), nil, []store.Charge{{Key: "k", Limit: l, Cost: cost}}, mete.Mode{})
			if err != nil {
				t.Error(err)
				return
			}
			if allowed {
				admitted.Add(int64(cost))
			}
		}
	})
	starts := len(c.Boundaries(nil, begin, s.clock.Now(), 100)) - 2
	if starts < 4 {
		t.Fatalf("the clock passed %d midnights", starts)
	}
	refilled := 30 * bucket.Token * bucket.Tokens(starts)
	if got := bucket.Tokens(admitted.Load()); got > refilled || got == 0 {
		t.Errorf("admitted %v tokens on %d days, at most %v are allowed", got, starts, refilled)
	}
	s.assertRemaining("k", l, refilled-bucket.Tokens(admitted.Load()))
}
