// SPDX-License-Identifier: Apache-2.0

package bucket_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/metehq/mete/bucket"
)

// levelAt reads a course along straight lines, as a page draws it.
func levelAt(course []bucket.Point, after time.Duration) float64 {
	last := course[0]
	for _, p := range course {
		if p.After > after {
			part := float64(after-last.After) / float64(p.After-last.After)
			return float64(last.Level) + part*float64(p.Level-last.Level)
		}
		last = p
	}
	return float64(last.Level)
}

// A course matches the engine at every instant, also between its points.
func TestCourse_IsWhatTheEngineHoldsThen(t *testing.T) {
	const most = 50
	eachKind(t, func(t *testing.T, r *rand.Rand, kind bucket.Spec) {
		drawn, bent := 0, 0
		for range 4000 {
			o := randomOf(r, kind)
			s, now := alone(r, o)
			seen := o.limit.Peek(s, bucket.Instant(now), 0, 0)
			tokens, per := o.limit.Refill()
			until := upTo(r, 6*per)
			if full := seen.FullAfter().Microseconds(); full > 0 && full < 1<<50 && r.IntN(4) > 0 {
				until = full + upTo(r, full)
			}
			if o.limit.Algorithm() == bucket.AlgorithmStepped && until/per >= most {
				continue // one line stands for its steps
			}
			course := seen.LevelCurve(time.Duration(until)*time.Microsecond, most)
			if len(course) > 2 {
				bent++
			}
			tolerance := 2.0 // of rounding, in thousandths
			switch o.limit.Algorithm() {
			case bucket.AlgorithmSlidingWindow:
				tolerance += float64(s.Spent) / 4096
			case bucket.AlgorithmContinuous:
				tolerance += float64(tokens) / float64(per) // a bend lies on a microsecond
			}
			for range 20 {
				after := time.Duration(upTo(r, until)) * time.Microsecond
				got, want := levelAt(course, after), float64(seen.After(after).Level())
				if got > want+tolerance || got < want-tolerance {
					t.Fatalf("%v with %+v at %d: %v later it holds %v, and %v is drawn by %v", o.limit, s, now, after, want, got, course)
				}
				drawn++
			}
		}
		if drawn < 5000 || bent < 100 {
			t.Errorf("only %d levels were compared, of %d courses with a bend", drawn, bent)
		}
	})
}

func TestCourse(t *testing.T) {
	sec := func(n float64) time.Duration { return time.Duration(n * float64(time.Second)) }
	perSecond := func(n bucket.Tokens, every float64) bucket.Rate {
		return bucket.Rate{Tokens: n * bucket.Token, Per: sec(every)}
	}
	for _, tt := range []struct {
		name string
		spec bucket.Spec
		cost bucket.Tokens
		most int
		want []bucket.Point
	}{
		{"continuous", bucket.Spec{Capacity: 5000, Rate: perSecond(1, 1)}, 3000, 9, []bucket.Point{{0, 2000}, {sec(3), 5000}, {sec(10), 5000}}},
		{"full", bucket.Spec{Capacity: 5000, Rate: perSecond(1, 1)}, 0, 9, []bucket.Point{{0, 5000}, {sec(10), 5000}}},
		{"stepped", bucket.Spec{Algorithm: bucket.AlgorithmStepped, Capacity: 5000, Rate: perSecond(2, 4)}, 3000, 9, []bucket.Point{
			{0, 2000}, {sec(4) - time.Microsecond, 2000}, {sec(4), 4000}, {sec(8) - time.Microsecond, 4000}, {sec(8), 5000}, {sec(10), 5000},
		}},
		{"more steps than most", bucket.Spec{Algorithm: bucket.AlgorithmStepped, Capacity: 5000, Rate: perSecond(1, 2)}, 4000, 2, []bucket.Point{{0, 1000}, {sec(8), 5000}, {sec(10), 5000}}},
		{"sliding window", bucket.Spec{Algorithm: bucket.AlgorithmSlidingWindow, Rate: perSecond(5, 4)}, 4000, 9, []bucket.Point{
			{0, 1000}, {sec(4), 1000}, {sec(8), 5000}, {sec(10), 5000},
		}},
		{"sliding log", bucket.Spec{Algorithm: bucket.AlgorithmSlidingLog, Rate: perSecond(5, 4)}, 4000, 9, []bucket.Point{
			{0, 1000}, {sec(4) - time.Microsecond, 1000}, {sec(4), 5000}, {sec(10), 5000},
		}},
		{"queue", bucket.Spec{Capacity: 1000, Rate: perSecond(1, 1), Queue: 3000}, 3000, 9, []bucket.Point{{0, 1000}, {sec(3), 4000}, {sec(10), 4000}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l, _, err := tt.spec.Compile()
			if err != nil {
				t.Fatal(err)
			}
			_, s := l.Reserve(bucket.State{}, 0, tt.cost, time.Hour)
			if got := s.LevelCurve(10*time.Second, tt.most); !slices.Equal(got, tt.want) {
				t.Errorf("got %v, want %v", got, tt.want)
			}
		})
	}
}

// A debt is a level below 0.
func TestCourse_Owed(t *testing.T) {
	l, err := bucket.NewLimit(5*bucket.Token, bucket.Rate{Tokens: 2 * bucket.Token, Per: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	s, _ := l.Reserve(bucket.State{}, 0, 5*bucket.Token, 0)
	_, snap := l.Reserve(s, 0, 4*bucket.Token, time.Hour)
	want := []bucket.Point{{0, -4000}, {4500 * time.Millisecond, 5000}, {10 * time.Second, 5000}}
	if got := snap.LevelCurve(10*time.Second, 1); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// A server draws the course of a watched bucket twice per second: one line and 30 steps.
func BenchmarkCourse(b *testing.B) {
	for name, refill := range map[string]bucket.Algorithm{"continuous": bucket.AlgorithmContinuous, "stepped": bucket.AlgorithmStepped} {
		l, _, err := bucket.Spec{Algorithm: refill, Capacity: 100 * bucket.Token, Rate: bucket.Rate{Tokens: bucket.Token, Per: time.Second}}.Compile()
		if err != nil {
			b.Fatal(err)
		}
		s, _ := l.Take(bucket.State{}, 0, 100*bucket.Token)
		seen := l.Peek(s, 0, 0, 0)
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				seen.LevelCurve(30*time.Second, 100)
			}
		})
	}
}
