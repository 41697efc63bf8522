// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/lane"
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
		p.settles = p.settles && i == 0
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
	v.compareRows(func(row string) string { return row })
}

// unpackRow returns a row of version 2 as one of version 1, which may hold the same account.
func unpackRow(row string) string {
	if !strings.HasPrefix(row, "2:") {
		return row
	}
	limit, state, _ := strings.Cut(row[2:], " ")
	number := func(from int) int64 {
		return int64(math.Float64frombits(binary.LittleEndian.Uint64([]byte(state[from:]))))
	}
	return fmt.Sprintf("1:%d@%d %s", number(0), number(8), limit)
}

var historyID = regexp.MustCompile(`held 1 \S+`)

// compareRows compares the rows of both stores in the form that they have by canonical. It returns the number of histories.
func (v *variants) compareRows(canonical func(string) string) (histories int) {
	v.Helper()
	for k := range 6 {
		rows := [2]string{}
		for i, s := range v.stores {
			row, _ := v.client.Do(v.Context(), v.client.B().Get().Key(fmt.Sprint(s.bucketPrefix, "k", k)).Build()).ToString()
			rows[i] = canonical(row)
		}
		if rows[0] != rows[1] {
			v.Errorf("row k%d is %q, want %q", k, rows[0], rows[1])
		}
		histories += strings.Count(rows[0], "held 1")
	}
	return histories
}

// TestSettleVariant_EqualsTheGeneralScript sends the same batches of takes, which may await their settlement, and of
// cancellations to take_settle.lua and to the general part of the script. Answers and rows are equal.
func TestSettleVariant_EqualsTheGeneralScript(t *testing.T) {
	t.Parallel()
	client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{proctest.StartRedis(t).Addr}, DisableCache: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	canceled, histories := 0, 0
	for seed := range uint64(30) {
		clock := storetest.NewClock()
		v := variants{T: t, Rand: rand.New(testseed.PCG(seed, 29)), client: client}
		for i, name := range []string{"settle", "by-general"} {
			v.stores[i], err = New(client, Config{Prefix: fmt.Sprintf("%s%d:", name, seed), Now: clock.Now, Timeout: 30 * time.Second})
			if err != nil {
				t.Fatal(err)
			}
		}
		v.chooseLimits()
		var open []mete.Refund
		for range 60 {
			step := v.Int64N(1 << (1 + v.IntN(20)))
			if v.IntN(10) == 0 {
				step = -step / 4
			}
			clock.Advance(step)
			before := len(open)
			open = v.settle(open)
			canceled += max(before-len(open), 0)
			histories += v.compareRows(func(row string) string { return historyID.ReplaceAllString(unpackRow(row), "held 1 ID") })
			if t.Failed() {
				t.Fatalf("seed %d", seed)
			}
		}
	}
	if canceled < 500 || histories < 500 {
		t.Errorf("%d cancellations and %d rows with a history, want more of both", canceled, histories)
	}
}

// settle sends a batch of takes and of cancellations of open, and returns the takes that can be canceled then.
func (v *variants) settle(open []mete.Refund) []mete.Refund {
	v.Helper()
	var batches [2][]*ask
	for range 1 + v.IntN(8) {
		if at := v.IntN(len(open) + 1); at < len(open) && v.IntN(3) > 0 {
			refund := open[at]
			refund.Cost = 1 + bucket.Tokens(v.Int64N(int64(refund.Cost)+2))
			open = slices.Delete(open, at, at+1)
			for i := range batches {
				batches[i] = append(batches[i], newRefund([]mete.Refund{refund}))
			}
			continue
		}
		k := v.IntN(6)
		c := store.Charge{Key: fmt.Sprint("k", k), Limit: v.limits[k%len(v.limits)], Cost: 1 + v.costs[v.IntN(len(v.costs))]>>v.IntN(6)}
		if v.IntN(4) > 0 {
			c.Await = time.Duration(1+v.Int64N(1<<(1+v.IntN(20)))) * time.Microsecond
		}
		mode := mete.Mode{}
		if v.IntN(100) == 0 {
			mode.MaxWait = bucket.Forced // leaves a debt
		}
		for i := range batches {
			batches[i] = append(batches[i], newAsk(opTake, []store.Charge{c}, mode))
		}
	}
	for i, s := range v.stores {
		var p program
		p.reset(s.config.Prefix, s.now())
		for _, a := range batches[i] {
			p.add(a)
		}
		p.plain, p.settles = false, p.settles && i == 0
		s.run(&p, s.config.Timeout)
	}
	for i, got := range batches[0] {
		want := batches[1][i]
		if got.Err != nil || want.Err != nil || got.allowed != want.allowed || !slices.Equal(got.snaps, want.snaps) {
			v.Errorf("%+v of %+v: %v, %+v, %v\nwant %v, %+v, %v", got.charges, got.taken, got.allowed, got.snaps, got.Err, want.allowed, want.snaps, want.Err)
		}
		if got.op == opTake && got.allowed && got.snaps[0].Taken() != (bucket.Taken{}) {
			open = append(open, mete.Refund{Charge: got.charges[0], Taken: got.snaps[0].Taken()})
		}
	}
	return open
}

// A generalBatch skips the variants of the script.
type generalBatch struct{ batch }

func (b *generalBatch) Run(timeout time.Duration) time.Duration {
	b.plain, b.settles = false, false
	return b.batch.Run(timeout)
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
		s.lanes.Close()
		s.lanes = lane.New(lane.Config[*ask]{
			MaxBatch: s.config.MaxBatch, MaxQueue: s.config.MaxQueue, MinInFlight: 2, MaxInFlight: s.config.MaxInFlight, Timeout: s.config.Timeout,
			NewBatch: func() lane.Batch[*ask] { return &generalBatch{batch{store: s}} },
		})
		return s
	})
}
