// SPDX-License-Identifier: Apache-2.0

package lane_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/internal/lane"
	"github.com/metehq/mete/store"
)

func TestDo_Leaves(t *testing.T) {
	soon := func(ctx context.Context) (context.Context, context.CancelFunc) {
		return context.WithTimeout(ctx, 500*time.Millisecond)
	}
	for name, tt := range map[string]struct {
		busy    bool // a call of a second is in flight
		context func(context.Context) (context.Context, context.CancelFunc)
		within  time.Duration
		free    bool
		spent   store.Spending
		why     error
		after   time.Duration
	}{
		"before it came": {
			context: func(ctx context.Context) (context.Context, context.CancelFunc) {
				ctx, cancel := context.WithCancel(ctx)
				cancel()
				return ctx, cancel
			},
			free: true, spent: mete.NotSpent, why: context.Canceled,
		},
		"in the queue": {
			busy: true, context: soon,
			spent: mete.NotSpent, why: context.DeadlineExceeded, after: 500 * time.Millisecond,
		},
		"in the queue, as within is over": {
			busy: true, context: context.WithCancel, within: 300 * time.Millisecond,
			spent: mete.NotSpent, why: context.DeadlineExceeded, after: 300 * time.Millisecond,
		},
		"on its way": {
			context: soon,
			spent:   mete.MaybeSpent, why: context.DeadlineExceeded, after: 500 * time.Millisecond,
		},
		"on its way, as ctx ends before within": {
			context: soon, within: 2 * time.Second,
			spent: mete.MaybeSpent, why: context.DeadlineExceeded, after: 500 * time.Millisecond,
		},
		"on its way, as within is over": {
			busy: true, context: context.WithCancel, within: 1500 * time.Millisecond,
			spent: mete.MaybeSpent, why: context.DeadlineExceeded, after: 1500 * time.Millisecond,
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var s server
				lanes := s.lanes(lane.Config[*ask]{MaxInFlight: 1})
				c := crowd{T: t, lane: lanes.At(0)}
				if tt.busy {
					c.come(&ask{number: 1})
				}
				ctx, cancel := tt.context(t.Context())
				defer cancel()
				begin := time.Now()
				free, err := c.lane.Do(ctx, &ask{number: 2}, tt.within)
				if took := time.Since(begin); free != tt.free || mete.Spent(err) != tt.spent || !errors.Is(err, tt.why) || took != tt.after {
					t.Errorf("free %v, spent %v, %v after %v; want %v, %v, %v after %v",
						free, mete.Spent(err), err, took, tt.free, tt.spent, tt.why, tt.after)
				}
				if got := lanes.Stats().Waiting; got != 0 {
					t.Errorf("%d wait", got)
				}
				lanes.Close()
				asked := slices.ContainsFunc(s.calls, func(c []int) bool { return slices.Contains(c, 2) })
				if maybe := tt.spent == mete.MaybeSpent; asked != maybe {
					t.Errorf("asked %v, want %v", asked, maybe)
				}
			})
		})
	}
}

// TestDo_AnAnswerCounts delivers an answer at the same instant as the timeout.
func TestDo_AnAnswerCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s server
		lanes := s.lanes(lane.Config[*ask]{})
		for i := range 200 {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			a := &ask{number: 1 + i}
			free, err := lanes.At(0).Do(ctx, a, 0)
			switch {
			case free && err == nil && a.answer == a.number:
			case !free && mete.Spent(err) == mete.MaybeSpent && errors.Is(err, context.DeadlineExceeded):
			default:
				t.Errorf("free %v, %v", free, err)
			}
			cancel()
		}
		lanes.Close()
	})
}

// TestDo_WhoLeftTakesNoRoom abandons so many asks that a queue which counted them would be full.
func TestDo_WhoLeftTakesNoRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := server{takes: func(int) time.Duration { return time.Hour }}
		c := crowd{T: t, lane: s.lanes(lane.Config[*ask]{MaxQueue: 3, MaxBatch: 2, MaxInFlight: 1}).At(0)}
		c.come(&ask{number: 1})
		for i := range 300 {
			if free, err := c.lane.Do(t.Context(), &ask{number: -1}, time.Second); free || mete.Spent(err) != mete.NotSpent {
				t.Fatalf("free %v, %v", free, err)
			}
			if i%100 == 50 {
				c.come(&ask{number: i})
			}
			if i == 250 {
				break
			}
		}
		c.all.Wait()
		c.same(&s, []int{1}, []int{50, 150}, []int{250})
	})
}
