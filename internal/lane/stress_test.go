// SPDX-License-Identifier: Apache-2.0

package lane_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/internal/lane"
	"github.com/metehq/mete/store"
)

// TestDo_IsAskedOnce has callers that abandon asks at any time. An answered ask was sent once, a NotSpent one
// never, and no free ask gets an answer of another call.
func TestDo_IsAskedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const callers, each = 40, 300
		s := server{takes: func(n int) time.Duration { return time.Duration(1+rand.IntN(20)+n) * time.Millisecond }}
		lanes := s.lanes(lane.Config[*ask]{Lanes: 2, MaxBatch: 5, MaxQueue: 15, MaxInFlight: 3})
		told := make([]error, callers*each)
		var all sync.WaitGroup
		for i := range callers {
			all.Go(func() {
				a := new(ask)
				for n := i * each; n < (i+1)*each; n++ {
					a.number, a.apart = n, rand.IntN(4) == 0
					ctx, cancel, within := patience(t.Context())
					free, err := lanes.At(rand.IntN(2)).Do(ctx, a, within)
					cancel()
					if told[n] = err; err == nil && (!free || a.answer != n) {
						t.Errorf("ask %d: free %v, answer %d", n, free, a.answer)
					}
					if !free {
						a = new(ask)
					} else if a.number != n {
						t.Errorf("ask %d is another's", n)
					}
				}
			})
		}
		all.Wait()
		lanes.Close()
		asked, outcomes := make([]int, len(told)), map[string]int{}
		for _, c := range s.calls {
			for _, n := range c {
				asked[n]++
			}
		}
		for n, err := range told {
			least, most := 1, 1
			switch {
			case err == nil:
				outcomes["answered"]++
			case mete.Spent(err) == mete.MaybeSpent:
				outcomes["maybe spent"]++
			case errors.Is(err, store.ErrOverloaded):
				outcomes["overloaded"]++
				least, most = 0, 0
			default:
				outcomes["left the queue"]++
				least, most = 0, 0
			}
			if asked[n] < least || asked[n] > most {
				t.Errorf("ask %d: %v, and was asked %d times", n, err, asked[n])
			}
		}
		for _, o := range []string{"answered", "maybe spent", "overloaded", "left the queue"} {
			if outcomes[o] < 100 {
				t.Errorf("%d asks %s: that hardly was a test", outcomes[o], o)
			}
		}
	})
}

// patience returns a random timeout: some callers wait forever, some not at all.
func patience(ctx context.Context) (_ context.Context, cancel context.CancelFunc, within time.Duration) {
	d := time.Duration(rand.IntN(40)) * time.Millisecond
	switch rand.IntN(4) {
	case 0:
		return context.Background(), func() {}, 0
	case 1:
		return context.Background(), func() {}, d
	case 2:
		ctx, cancel = context.WithTimeout(ctx, d)
		return ctx, cancel, 0
	default:
		ctx, cancel = context.WithTimeout(ctx, d)
		return ctx, cancel, 15 * time.Millisecond
	}
}
