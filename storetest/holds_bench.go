// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"slices"
	"testing"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/store"
)

// BenchmarkHolds reports the costs of a take, of a take with an ID, and of a hold with its settlement. It also reports the
// ratios of the hold to both takes. A take with an ID is the closest to a hold: both are remembered. It alternates rounds of them, so
// that other load on the machine affects all, and reports the medians. open returns a new store, or always the same if it
// can keep as many holds as the benchmark makes.
func BenchmarkHolds(b *testing.B, open func() mete.Store) {
	l := limit(b, 1_000_000*bucket.Token, "1000/1s")
	r := alternate(b, open,
		contender{"take", benchTake("take", l)},
		contender{"take-by-id", benchTakeByID("id", l)},
		contender{"hold+settle", benchHold("hold", l)})
	r.ratio("hold+settle", "take")
	r.ratio("hold+settle", "take-by-id")
}

// BenchmarkCalendars is [BenchmarkHolds] for takes and holds of a calendar window and of a fixed window of a day. It reports the ratios
// of the calendar window to the fixed window.
func BenchmarkCalendars(b *testing.B, open func() mete.Store) {
	budget, c := 1_000_000_000*bucket.Token, bucket.Calendar{Window: bucket.CalendarDay, Zone: "Europe/Berlin"}
	spec := bucket.Spec{Algorithm: bucket.AlgorithmStepped, Capacity: budget, Rate: bucket.Rate{Tokens: budget, Per: c.Window.Length()}}
	fixed := compile(b, spec)
	spec.Anchor, spec.Calendar = bucket.AnchorCalendar, c
	calendar := compile(b, spec)
	r := alternate(b, open,
		contender{"fixed", benchTake("fixed", fixed)},
		contender{"calendar", benchTake("calendar", calendar)},
		contender{"fixed-hold+settle", benchHold("fixed-hold", fixed)},
		contender{"calendar-hold+settle", benchHold("calendar-hold", calendar)})
	r.ratio("calendar", "fixed")
	r.ratio("calendar-hold+settle", "fixed-hold+settle")
}

// A contender calls a store with an ID that is new.
type contender struct {
	name string
	call func(b *testing.B, s mete.Store, id string) error
}

func benchTake(key string, l bucket.Limit) func(*testing.B, mete.Store, string) error {
	byID := benchTakeByID(key, l)
	return func(b *testing.B, s mete.Store, _ string) error { return byID(b, s, "") }
}

func benchTakeByID(key string, l bucket.Limit) func(*testing.B, mete.Store, string) error {
	var snaps []bucket.Snapshot
	charges := []store.Charge{charge(key, l, 2*bucket.Token)}
	return func(b *testing.B, s mete.Store, id string) (err error) {
		snaps, _, err = s.Take(b.Context(), snaps[:0], charges, mete.Mode{ID: id})
		return err
	}
}

func benchHold(key string, l bucket.Limit) func(*testing.B, mete.Store, string) error {
	var snaps []bucket.Snapshot
	charges, h := []store.Charge{charge(key, l, 2*bucket.Token)}, minuteHold(0)
	h.Terms = make([]store.Terms, 1)
	return func(b *testing.B, s mete.Store, id string) (err error) {
		h.ID = id
		if snaps, id, err = s.(store.Holder).Hold(b.Context(), snaps[:0], charges, mete.Mode{}, h); err == nil {
			_, err = s.(store.Holder).Settle(b.Context(), id, bucket.Token)
		}
		return err
	}
}

// medians are nanoseconds of one call of each contender.
type medians struct {
	b  *testing.B
	of map[string]float64
}

// alternate reports the median of each contender, over alternate rounds of them.
func alternate(b *testing.B, open func() mete.Store, contenders ...contender) medians {
	const round, rounds = 32, 4096 // of one store
	times := map[string][]float64{}
	ids := make([]string, round)
	var s mete.Store
	for i := 0; b.Loop(); i++ {
		if i%rounds == 0 {
			s = open()
		}
		for k, c := range contenders {
			for j := range ids {
				ids[j] = holdID((i*len(contenders)+k)*round + j)
			}
			start := time.Now()
			for _, id := range ids {
				if err := c.call(b, s, id); err != nil {
					b.Fatal(err)
				}
			}
			times[c.name] = append(times[c.name], float64(time.Since(start))/round)
		}
	}
	r := medians{b, map[string]float64{}}
	b.ReportMetric(0, "ns/op")
	for _, c := range contenders {
		slices.Sort(times[c.name])
		r.of[c.name] = times[c.name][len(times[c.name])/2]
		b.ReportMetric(r.of[c.name], "ns/"+c.name)
	}
	return r
}

func (r medians) ratio(a, b string) { r.b.ReportMetric(r.of[a]/r.of[b], a+"/"+b) }
