// SPDX-License-Identifier: Apache-2.0

package lane_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/internal/lane"
)

func TestAt_IsAlwaysTheSame(t *testing.T) {
	var s server
	lanes := s.lanes(lane.Config[*ask]{Lanes: 3})
	var got [64]*lane.Lane[*ask]
	var all sync.WaitGroup
	for i := range got {
		all.Go(func() { got[i] = lanes.At(i % 3) })
	}
	all.Wait()
	if got[0] == got[1] || got[1] == got[2] || got[0] == got[2] {
		t.Error("two lanes are the same")
	}
	for i := range got {
		if got[i] != got[i%3] {
			t.Errorf("lane %d is another than before", i%3)
		}
	}
}

func TestLanes_DoNotWaitForEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s server
		lanes := s.lanes(lane.Config[*ask]{Lanes: 16384, MaxQueue: 1, MaxInFlight: 1})
		var crowds [100]crowd
		for i := range crowds {
			crowds[i].T, crowds[i].lane = t, lanes.At(i*163)
			crowds[i].come(&ask{number: 1})
			crowds[i].come(&ask{number: 2})
		}
		if got, want := lanes.Stats(), (lane.Stats{Waiting: 100, InFlight: 100}); got != want {
			t.Errorf("%+v, want %+v", got, want)
		}
		begin := time.Now()
		for i := range crowds {
			crowds[i].all.Wait()
		}
		if took := time.Since(begin); took != 2*time.Second {
			t.Errorf("two asks of each lane took %v, want 2s", took)
		}
	})
}

func TestClose_WaitsForWhatIsOnItsWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s server
		lanes, begin := s.lanes(lane.Config[*ask]{Lanes: 4, MaxInFlight: 1}), time.Now()
		c, d := crowd{T: t, lane: lanes.At(0)}, crowd{T: t, lane: lanes.At(1)}
		for i := range 10 {
			c.come(&ask{number: i})
		}
		d.all.Go(func() { // it can be abandoned, so it has no inline call
			if free, err := d.lane.Do(t.Context(), new(ask), 0); !free || err != nil {
				t.Errorf("free %v, %v", free, err)
			}
		})
		synctest.Wait()
		for range 2 {
			d.all.Go(func() {
				lanes.Close()
				if took := time.Since(begin); took != 2*time.Second {
					t.Errorf("closed after %v, want 2s", took)
				}
			})
		}
		synctest.Wait()
		for i := range 3 { // an unused one
			for _, ctx := range []context.Context{t.Context(), context.Background()} {
				if free, err := lanes.At(i).Do(ctx, new(ask), 0); !free || !errors.Is(err, lane.ErrClosed) || mete.Spent(err) != mete.NotSpent {
					t.Errorf("lane %d, closed: free %v, %v", i, free, err)
				}
			}
		}
		c.all.Wait()
		d.all.Wait()
		lanes.Close()
		if got := lanes.Stats(); got != (lane.Stats{}) {
			t.Errorf("afterwards %+v", got)
		}
	})
}

func TestClose_OfWhatNobodyAsked(t *testing.T) {
	var s server
	s.lanes(lane.Config[*ask]{Lanes: 16384}).Close()
}
