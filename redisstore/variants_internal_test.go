// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/proctest"
	"github.com/metehq/mete/internal/testseed"
	"github.com/metehq/mete/store"
	"github.com/metehq/mete/storetest"
	"github.com/redis/rueidis"
)

// TestVariants_EqualTheGeneralScript sends the same random batches through the variants and the general part of
// the script. Answers and rows are equal, including rows with debt, a future time or a different limit.
func TestVariants_EqualTheGeneralScript(t *testing.T) {
	t.Parallel()
	client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{proctest.StartRedis(t).Addr}, DisableCache: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	even, plain := 0, 0
	for seed := range uint64(40) {
		clock := storetest.NewClock()
		v := variants{T: t, Rand: rand.New(testseed.PCG(seed, 23)), client: client}
		for i, name := range []string{"variant", "general"} {
			v.stores[i], err = New(client, Config{Prefix: fmt.Sprintf("%s%d:", name, seed), Now: clock.Now, Timeout: 30 * time.Second})
			if err != nil {
				t.Fatal(err)
			}
		}
		v.chooseLimits()
		for range 40 {
			step := v.Int64N(1 << (1 + v.IntN(23)))
			if v.IntN(10) == 0 {
				step = -step / 4
			}
			clock.Advance(step)
			v.send()
			if t.Failed() {
				t.Fatalf("seed %d", seed)
			}
		}
		even, plain = even+v.even, plain+v.plain
	}
	if even < 200 || plain < 200 {
		t.Errorf("%d calls of the first variant and %d of the second, want more of both", even, plain)
	}
}

// variants are two stores that get the same asks.
type variants struct {
	*testing.T
	*rand.Rand
	client rueidis.Client
	stores [2]*Store // by the variants, and by the general part
	limits []bucket.Limit
	costs  []bucket.Tokens

	even, plain int // calls that a variant answered
}

func (v *variants) chooseLimits() {
	for range 1 + v.IntN(3) {
		spec := bucket.Spec{
			Capacity: bucket.Tokens(1 + v.Int64N(1<<(1+v.IntN(16)))),
			Rate:     bucket.Rate{Tokens: bucket.Tokens(1 + 30*v.Int64N(170)), Per: time.Duration(1+v.IntN(4)) * 300 * time.Millisecond},
		}
		if owed := bucket.Tokens(v.IntN(5000)); v.IntN(3) == 0 {
			spec.MaxReserved = &owed
		}
		l, _, err := spec.Compile()
		if err != nil {
			v.Fatal(err)
		}
		v.limits = append(v.limits, l)
		v.costs = append(v.costs, 1+bucket.Tokens(v.Int64N(int64(l.Capacity())/2+2)))
	}
}

// send sends one random batch to both stores.
func (v *variants) send() {
	mode, forced := mete.Mode{}, v.IntN(8) == 0
	if forced {
		mode.MaxWait = bucket.Forced // no variant supports it, but it leaves a debt
	}
	several, limits, costs := v.IntN(2) == 0, len(v.limits), len(v.costs)
	if v.IntN(2) == 0 {
		limits, costs = 1, 1
	}
	var batches [2][]*ask
	for range 1 + v.IntN(20) {
		var charges []store.Charge
		keys := v.Perm(6)[:1]
		if several {
			keys = v.Perm(6)[:1+v.IntN(3)]
		}
		slices.Sort(keys)
		for _, k := range keys {
			l := v.limits[k%limits]
			if v.IntN(200) == 0 {
				l = v.limits[v.IntN(limits)]
			}
			charges = append(charges, store.Charge{Key: fmt.Sprint("k", k), Limit: l, Cost: v.costs[v.IntN(costs)]})
		}
		for i := range batches {
			batches[i] = append(batches[i], newAsk(opTake, charges, mode))
		}
	}
	for i, s := range v.stores {
		var p program
		p.reset(s.config.Prefix, s.now())
		for _, a := range batches[i] {
			p.add(a)
		}
		s.mixed.Store(int64(i)) // randomly skip the variants in the next call
		s.run(&p, s.config.Timeout)
		switch {
		case p.plain && p.isEven():
			v.even++
		case p.plain:
			v.plain++
		}
		if i == 1 && p.plain {
			v.Error("the general part was not asked")
		}
	}
	for i, got := range batches[0] {
		if want := batches[1][i]; got.Err != nil || want.Err != nil || got.allowed != want.allowed || !slices.Equal(got.snaps, want.snaps) {
			v.Errorf("%+v: %v, %+v, %v\nwant %v, %+v, %v", got.charges, got.allowed, got.snaps, got.Err, want.allowed, want.snaps, want.Err)
		}
	}
	for k := range 6 {
		rows := [2]string{}
		for i, s := range v.stores {
			rows[i], _ = v.client.Do(v.Context(), v.client.B().Get().Key(fmt.Sprint(s.bucketPrefix, "k", k)).Build()).ToString()
		}
		if rows[0] != rows[1] {
			v.Errorf("row k%d is %q, want %q", k, rows[0], rows[1])
		}
	}
}

// TestStore_ByTheGeneralScript runs the vectors and random takes through the general part of the script.
// TestStore_OnOneServer uses the variants if possible.
func TestStore_ByTheGeneralScript(t *testing.T) {
	t.Parallel()
	client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{proctest.StartRedis(t).Addr}, DisableCache: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	stores := 0
	storetest.Run(t, func(t *testing.T, now func() bucket.Instant) mete.Store {
		stores++
		s, err := New(client, Config{Prefix: fmt.Sprintf("general%d:", stores), Now: now, Timeout: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		s.mixed.Store(1 << 62) // no call of this test is plain
		return s
	})
}
