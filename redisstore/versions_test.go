// SPDX-License-Identifier: Apache-2.0

package redisstore_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/proctest"
	"github.com/metehq/mete/redisstore"
	"github.com/metehq/mete/store"
)

// TestRow_IsWhatTheDocumentSays pins the stored format, because other versions of this package read it.
func TestRow_IsWhatTheDocumentSays(t *testing.T) {
	client := connect(t, proctest.StartRedis(t).Addr)
	now := bucket.Instant(1_700_000_000_250_000)
	s, err := redisstore.New(client, redisstore.Config{Now: func() bucket.Instant { return now }, Timeout: awhile})
	if err != nil {
		t.Fatal(err)
	}
	per := func(n int64, d time.Duration) bucket.Rate {
		return bucket.Rate{Tokens: bucket.Tokens(n) * bucket.Token, Per: d}
	}
	owed := 5 * bucket.Token
	token := compiled(bucket.Spec{Capacity: 20 * bucket.Token, Rate: per(10, time.Second)})
	window := compiled(bucket.Spec{Algorithm: bucket.AlgorithmSlidingWindow, Rate: per(10, time.Second)})
	log := compiled(bucket.Spec{Algorithm: bucket.AlgorithmSlidingLog, Rate: per(10, time.Second)})
	line := "1700000000250000 0000000002000\n"
	packed := func(limit string) string { // 200000 and 1700000000250000 as doubles
		return "2:" + limit + " \x00\x00\x00\x00\x00\x6a\x08\x41" + "\x40\x42\x88\x60\x90\x28\x18\x43"
	}
	for _, tt := range []struct {
		name   string
		limits []bucket.Limit // one after another
		want   string
	}{
		{"token bucket", []bucket.Limit{token}, packed("20000+1/100")},
		{"bounded debt", []bucket.Limit{compiled(bucket.Spec{Capacity: 20 * bucket.Token, Rate: per(10, time.Second), MaxReserved: &owed})},
			packed("20000+1/100d5000")},
		{"queue", []bucket.Limit{compiled(bucket.Spec{Capacity: 20 * bucket.Token, Rate: per(10, time.Second), Queue: owed})},
			packed("20000+1/100q5000")},
		{"stepped", []bucket.Limit{compiled(bucket.Spec{Algorithm: bucket.AlgorithmStepped, Capacity: 20 * bucket.Token, Rate: per(10, time.Second), Start: 100 * time.Millisecond})},
			"1:2000@1700000000100000 s20000+10000/1000000@100000"},
		{"from the first", []bucket.Limit{compiled(bucket.Spec{Algorithm: bucket.AlgorithmStepped, Capacity: 20 * bucket.Token, Rate: per(10, time.Second), Anchor: bucket.AnchorFirst})},
			"1:2000@1700000000250000 f20000+10000/1000000"},
		{"sliding window", []bucket.Limit{window}, "1:2000+0@1700000000000000 w10000+10000/1000000"},
		{"sliding log", []bucket.Limit{log}, "1:log sum=0000000002000 first=0000000000 lines=0000000001 l10000+10000/1000000\n" + line},
		{"two versions", []bucket.Limit{token, window},
			"1:4000+0@1700000000000000 w10000+10000/1000000\n400000@1700000000250000 20000+1/100"},
		{"three versions", []bucket.Limit{token, log, window},
			"1:6000+0@1700000000000000 w10000+10000/1000000\n" +
				"log sum=0000000006000 first=0000000000 lines=0000000001 l10000+10000/1000000\n1700000000250000 0000000006000\n" +
				"600000@1700000000250000 20000+1/100"},
		{"a fourth replaces the oldest", []bucket.Limit{token, window, log, faultLimit},
			"1:4000000@1700000000250000 400000+1/500\n" +
				"log sum=0000000008000 first=0000000000 lines=0000000001 l10000+10000/1000000\n1700000000250000 0000000008000\n" +
				"8000+0@1700000000000000 w10000+10000/1000000"},
	} {
		for _, l := range tt.limits {
			c := []store.Charge{{Key: tt.name, Limit: l, Cost: 2 * bucket.Token}}
			if _, allowed, err := s.Take(t.Context(), nil, c, mete.Mode{}); err != nil || !allowed {
				t.Fatalf("%s: allowed %v, %v", tt.name, allowed, err)
			}
		}
		got, err := client.Do(t.Context(), client.B().Get().Key("tb:"+tt.name).Build()).ToString()
		if err != nil || got != tt.want {
			t.Errorf("%s: %q, %v\nwant %q", tt.name, got, err, tt.want)
		}
	}
}

// TestVersions_AtOnce takes at full speed under three versions of a limit, from one bucket and with a second one.
// Each version admits no more than it would alone, and the row is deleted when all accounts are full.
func TestVersions_AtOnce(t *testing.T) {
	client := connect(t, proctest.StartRedis(t).Addr)
	nodes := sharing(t, client, 3)
	rate := bucket.Rate{Tokens: 100 * bucket.Token, Per: time.Hour}
	queue := compiled(bucket.Spec{Capacity: bucket.Token, Rate: rate, Queue: 50 * bucket.Token})
	for i, limits := range [][]bucket.Limit{
		{compiled(bucket.Spec{Algorithm: bucket.AlgorithmSlidingWindow, Rate: rate}), compiled(bucket.Spec{Capacity: 100 * bucket.Token, Rate: rate}),
			compiled(bucket.Spec{Algorithm: bucket.AlgorithmSlidingLog, Rate: rate})},
		{queue, compiled(bucket.Spec{Capacity: 2 * bucket.Token, Rate: rate, Queue: 49 * bucket.Token}), compiled(bucket.Spec{Capacity: 90 * bucket.Token, Rate: rate})},
		{compiled(bucket.Spec{Capacity: 100 * bucket.Token, Rate: rate}), compiled(bucket.Spec{Capacity: 101 * bucket.Token, Rate: rate}),
			compiled(bucket.Spec{Algorithm: bucket.AlgorithmStepped, Capacity: 100 * bucket.Token, Rate: rate, Anchor: bucket.AnchorFirst})},
	} {
		admitted := make([]atomic.Int64, len(limits))
		began := time.Now()
		var all sync.WaitGroup
		for g := range 24 {
			all.Go(func() {
				v := g % len(limits)
				for n := range 40 {
					charges := []store.Charge{{Key: fmt.Sprint("k", i), Limit: limits[v], Cost: bucket.Token}}
					if n%3 == 0 {
						charges = append(charges, store.Charge{Key: "other", Limit: slowLimit, Cost: 1})
					}
					_, allowed, err := nodes[v].Take(t.Context(), nil, charges, mete.Mode{})
					if err != nil {
						t.Error(err)
						return
					}
					if allowed {
						admitted[v].Add(1)
					}
				}
			})
		}
		all.Wait()
		total, most := int64(0), int64(0)
		for v, l := range limits {
			most += int64((l.Capacity() + 1) / bucket.Token)
			if l.Queued() {
				most += int64(l.MaxReserved() / bucket.Token)
			}
			total += admitted[v].Load()
		}
		// Each version has its own bound. At least one is exhausted, because 960 tokens were requested.
		refilled := int64(3 * (1 + 100*time.Since(began).Hours()))
		if total > most+refilled || total < 50 {
			t.Errorf("%v admitted %d together, want 50 to %d", limits, total, most+refilled)
		}
		for v, l := range limits {
			own := int64(l.Capacity() / bucket.Token)
			if l.Queued() {
				own += int64(l.MaxReserved() / bucket.Token)
			}
			if got := admitted[v].Load(); got > own+1+refilled/3 {
				t.Errorf("%v admitted %d", l, got)
			}
		}
	}
}

// TestLeases_OfTwoVersions leases a bucket on two nodes under two versions of its limit. Each version keeps its
// own bound, and their leases are separate.
func TestLeases_OfTwoVersions(t *testing.T) {
	client := connect(t, proctest.StartRedis(t).Addr)
	nodes := sharing(t, client, 2)
	limits := []bucket.Limit{perSecond(t, 2000, 10_000), perSecond(t, 1000, 20_000)}
	admitted := make([]atomic.Int64, len(limits))
	began := time.Now()
	var all sync.WaitGroup
	for g := range 8 {
		all.Go(func() {
			v := g % 2
			charges := []store.Charge{{Key: "hot", Limit: limits[v], Cost: bucket.Token, Leased: true}}
			for time.Since(began) < time.Second {
				_, allowed, err := nodes[v].Take(t.Context(), nil, charges, mete.Mode{})
				if err != nil {
					t.Error(err)
					return
				}
				if allowed {
					admitted[v].Add(1)
				}
			}
		})
	}
	all.Wait()
	took := time.Since(began).Seconds()
	for v, l := range limits {
		n, p := l.Refill()
		most := float64(l.Capacity())/1000 + took*float64(n)/float64(p)*1000
		if got := float64(admitted[v].Load()); got > most || got == 0 {
			t.Errorf("%v admitted %v, want 1 to %.0f", l, got, most)
		}
		if got := nodes[v].Stats().Leases; got.Granted == 0 {
			t.Errorf("%v: nothing was lent: %+v", l, got)
		}
		if err := nodes[v].Close(); err != nil {
			t.Error(err)
		}
	}
	keys, err := client.Do(t.Context(), client.B().Keys().Pattern("*lease:*").Build()).AsStrSlice()
	if err != nil || len(keys) > 0 {
		t.Errorf("%q are left, %v; want no lease", keys, err)
	}
}
