// SPDX-License-Identifier: Apache-2.0

package lane_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/internal/lane"
	"github.com/metehq/mete/store"
)

// pass advances the bubble's clock by d.
func pass(d time.Duration) { time.Sleep(d) }

// A crowd is a set of callers of a lane. Each one waits before the next one arrives.
type crowd struct {
	*testing.T
	lane *lane.Lane[*ask]
	all  sync.WaitGroup
}

func (c *crowd) come(a *ask) {
	c.all.Go(func() {
		if free, err := c.lane.Do(context.Background(), a, 0); !free || err != nil || a.answer != a.number {
			c.Errorf("ask %d: free %v, %v, answer %d", a.number, free, err, a.answer)
		}
	})
	synctest.Wait()
}

// same asserts the calls so far.
func (c *crowd) same(s *server, want ...[]int) {
	c.Helper()
	if got := s.begun(); !slices.EqualFunc(got, want, slices.Equal) {
		c.Errorf("calls %v, want %v", got, want)
	}
}

func TestDo_WhoIsAloneGoesAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s server
		l, begin := s.lanes(lane.Config[*ask]{}).At(0), time.Now()
		for _, within := range []time.Duration{0, 5 * time.Second, time.Hour} {
			if free, err := l.Do(context.Background(), new(ask), within); !free || err != nil {
				t.Errorf("within %v: free %v, %v", within, free, err)
			}
		}
		if want := []time.Duration{time.Minute, 5 * time.Second, time.Minute}; !slices.Equal(s.timeouts, want) {
			t.Errorf("calls were given %v, want %v", s.timeouts, want)
		}
		if got := time.Since(begin); got != 3*time.Second {
			t.Errorf("three calls of a second took %v", got)
		}
	})
}

func TestDo_ThoseWhoWaitGoTogetherInTheirOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s server
		c := crowd{T: t, lane: s.lanes(lane.Config[*ask]{MaxBatch: 4, MaxInFlight: 1}).At(0)}
		for i := range 10 {
			c.come(&ask{number: i})
		}
		c.all.Wait()
		c.same(&s, []int{0}, []int{1, 2, 3, 4}, []int{5, 6, 7, 8}, []int{9})
	})
}

func TestDo_WhatABatchRefusesIsFirstInTheNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s server
		c := crowd{T: t, lane: s.lanes(lane.Config[*ask]{MaxInFlight: 1}).At(0)}
		for i := range 9 {
			c.come(&ask{number: i, apart: i%3 == 1})
		}
		c.all.Wait()
		c.same(&s, []int{0}, []int{1, 2, 3}, []int{4, 5, 6}, []int{7, 8})
	})
}

// TestDo_NobodyWaitsForLong has more callers than fit in one call. All ask again at once. Each ask waits for
// as few calls as possible.
func TestDo_NobodyWaitsForLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const callers, atOnce, end = 50, 7, 300 * time.Second
		var s server
		l, begin := s.lanes(lane.Config[*ask]{MaxBatch: atOnce, MaxInFlight: 1}).At(0), time.Now()
		var all sync.WaitGroup
		for range callers {
			all.Go(func() {
				for a := new(ask); time.Since(begin) < end; {
					asked := time.Now()
					_, err := l.Do(context.Background(), a, 0)
					if took := time.Since(asked); err != nil || took > (2+callers/atOnce)*time.Second {
						t.Errorf("%v after %v, want an answer after at most %d calls of a second", err, took, 2+callers/atOnce)
					}
				}
			})
		}
		all.Wait()
	})
}

func TestDo_HasBounds(t *testing.T) {
	for _, tt := range []struct{ batch, queue, min, max, first int }{
		{batch: 1, queue: 1, max: 1, first: 1},
		{batch: 3, queue: 10, max: 4, first: 1},
		{batch: 5, queue: 100, min: 2, max: 4, first: 2},
		{batch: 5, queue: 100, min: 8, max: 4, first: 4},
	} {
		t.Run(fmt.Sprintf("%+v", tt), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var s server
				lanes := s.lanes(lane.Config[*ask]{MaxBatch: tt.batch, MaxQueue: tt.queue, MinInFlight: tt.min, MaxInFlight: tt.max})
				c := crowd{T: t, lane: lanes.At(0)}
				for i := range tt.first + tt.queue {
					c.come(&ask{number: i})
				}
				for range 3 {
					if free, err := c.lane.Do(t.Context(), new(ask), 0); !free || !errors.Is(err, store.ErrOverloaded) || mete.Spent(err) != mete.NotSpent {
						t.Errorf("with a full queue: free %v, %v", free, err)
					}
				}
				if got, want := lanes.Stats(), (lane.Stats{Waiting: tt.queue, InFlight: tt.first, Refused: 3}); got != want {
					t.Errorf("%+v, want %+v", got, want)
				}
				c.all.Wait()
				synctest.Wait()
				if s.most > tt.max {
					t.Errorf("%d calls at a time, want %d at most", s.most, tt.max)
				}
				if largest := slices.MaxFunc(s.calls, func(a, b []int) int { return len(a) - len(b) }); len(largest) > tt.batch {
					t.Errorf("a call of %v, want %d at most", largest, tt.batch)
				}
				if got, want := lanes.Stats(), (lane.Stats{Refused: 3}); got != want {
					t.Errorf("afterwards %+v, want %+v", got, want)
				}
			})
		})
	}
}

func TestDo_AnErrorIsTheAsks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broken := errors.New("broken")
		s := server{fails: broken}
		l, a := s.lanes(lane.Config[*ask]{}).At(0), new(ask)
		for _, ctx := range []context.Context{context.Background(), t.Context()} {
			if free, err := l.Do(ctx, a, 0); !free || err != broken {
				t.Errorf("free %v, %v; want %v", free, err, broken)
			}
		}
		s.fails = nil
		if free, err := l.Do(t.Context(), a, 0); !free || err != nil {
			t.Errorf("used again: free %v, %v", free, err)
		}
	})
}

// TestDo_ALongWayIsFilled has a server that answers any number of concurrent calls.
func TestDo_ALongWayIsFilled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s server
		l := s.lanes(lane.Config[*ask]{MaxBatch: 1, MaxInFlight: 8}).At(0)
		var all sync.WaitGroup
		begin := time.Now()
		for range 20 {
			all.Go(func() {
				for a := new(ask); time.Since(begin) < time.Minute; {
					if _, err := l.Do(context.Background(), a, 0); err != nil {
						t.Error(err)
					}
				}
			})
		}
		all.Wait()
		if s.most != 8 || len(s.calls) < 400 {
			t.Errorf("%d calls in a minute, up to %d at a time; want 400 at least, and 8", len(s.calls), s.most)
		}
	})
}
