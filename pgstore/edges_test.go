// SPDX-License-Identifier: Apache-2.0

package pgstore_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/pgstore"
	"github.com/metehq/mete/store"
	"github.com/metehq/mete/storetest"
)

// An edge is a take that nearly changes the decision of the function, or a take of token after token.
type edge struct {
	at    bucket.Instant // after the start
	limit bucket.Limit
	cost  bucket.Tokens
	mode  mete.Mode
}

// TestTake_AtTheEdges makes takes that a microsecond, a thousandth or a unit more would decide differently.
func TestTake_AtTheEdges(t *testing.T) {
	pool := newPool(t)
	schema := migrated(t, pool)
	for name, edges := range edgesOf(t) {
		t.Run(name, func(t *testing.T) {
			clock := storetest.NewClock()
			start := clock.Now() - clock.Now()%1_000_000
			s := open(t, pool, pgstore.Config{Schema: schema, Prefix: name, Now: clock.Now, Timeout: awhile})
			model := storetest.NewModel(clock.Now)
			for i, e := range edges {
				clock.Set(start + e.at)
				charges := []store.Charge{{Key: "k", Limit: e.limit, Cost: e.cost}}
				got, allowed := takes(t, s, charges, e.mode)
				want, wantAllowed, _ := model.Take(t.Context(), nil, charges, e.mode)
				if allowed != wantAllowed || !slices.Equal(got, want) {
					t.Fatalf("step %d, %+v:\n got %v, %+v\nwant %v, %+v", i, e, allowed, got, wantAllowed, want)
				}
			}
		})
	}
}

func edgesOf(t *testing.T) map[string][]edge {
	ms := time.Millisecond
	none, few := bucket.Tokens(0), bucket.Tokens(7)
	force := mete.Mode{MaxWait: bucket.Forced}
	log := compiled(t, bucket.Spec{Algorithm: bucket.AlgorithmSlidingLog, Rate: bucket.Rate{Tokens: 10_000, Per: time.Hour}})
	window := compiled(t, bucket.Spec{Algorithm: bucket.AlgorithmSlidingWindow, Rate: bucket.Rate{Tokens: 10_000, Per: 100 * ms}, MaxReserved: &none})
	short := compiled(t, bucket.Spec{Algorithm: bucket.AlgorithmSlidingWindow, Rate: bucket.Rate{Tokens: 10_000, Per: ms}})
	stepped := compiled(t, bucket.Spec{Algorithm: bucket.AlgorithmStepped, Capacity: 5000, Rate: bucket.Rate{Tokens: 1000, Per: 100 * ms}, MaxReserved: &none})
	owing := compiled(t, bucket.Spec{Algorithm: bucket.AlgorithmStepped, Capacity: 5000, Rate: bucket.Rate{Tokens: 1000, Per: 100 * ms}})
	odd := compiled(t, bucket.Spec{Capacity: 5000, Rate: bucket.Rate{Tokens: 3000, Per: ms}, MaxReserved: &few}) // 3 per microsecond
	all := map[string][]edge{
		"a window is forced to its last": {{0, window, 6000, mete.Mode{}}, {100_000, window, 10_000, force}, {100_000, window, 1, force}},
		"a window is forced beyond":      {{100_000, window, 10_001, force}, {100_000, window, 10_000, force}},
		"a short window begins": {{0, short, 6001, mete.Mode{}}, {1000, short, 10_000, mete.Mode{UpTo: true}}, {1001, short, 10_000, mete.Mode{UpTo: true}},
			{1000, short, 10_000, mete.Mode{UpTo: true}}},
		"a step within a microsecond": {{0, stepped, 5000, mete.Mode{}}, {99_999, stepped, 1000, mete.Mode{MaxWait: time.Microsecond}},
			{99_998, stepped, 1000, mete.Mode{MaxWait: time.Microsecond}}},
		"a step behind the clock": {{100_000, owing, 5000, mete.Mode{}}, {99_000, owing, 1000, mete.Mode{MaxWait: 100 * ms}},
			{90_000, owing, 1000, mete.Mode{MaxWait: 200*ms - 1}}, {90_000, owing, 1000, mete.Mode{MaxWait: 200 * ms}}, {100_000, owing, 1000, mete.Mode{MaxWait: 300 * ms}}},
		"a wait of less than there is": {{0, odd, 5000, mete.Mode{}}, {0, odd, 1, mete.Mode{MaxWait: 1}}, {0, odd, 3, mete.Mode{MaxWait: time.Microsecond}},
			{0, odd, 1, mete.Mode{MaxWait: time.Microsecond}}, {0, odd, 5, mete.Mode{MaxWait: 3 * time.Microsecond}}, {0, odd, 4, mete.Mode{MaxWait: 3 * time.Microsecond}}},
	}
	for _, per := range []time.Duration{ms, 2 * ms} { // units of 1 and 2
		small := compiled(t, bucket.Spec{Capacity: 5000, Rate: bucket.Rate{Tokens: 1000, Per: per}})
		all[fmt.Sprint("a log becomes a bucket, ", per)] = []edge{{0, log, 10_000, mete.Mode{}}, {1, small, 1000, mete.Mode{}},
			{1, small, 1000, mete.Mode{MaxWait: time.Second}}, {5, small, 1000, mete.Mode{}}}
	}
	return all
}
