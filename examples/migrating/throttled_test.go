// SPDX-License-Identifier: Apache-2.0

package migrating_test

import (
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/keyed"
)

// RateQuota{PerMin(20), MaxBurst: 5} admits 6 at once, which is a capacity of 6.
func TestThrottled_BurstIsCapacityMinusOne(t *testing.T) {
	play(t, tokenBucket(t, 6, "20/1m"),
		step{0, 6, true, 0},
		step{0, 1, false, 3 * time.Second},
	)
}

// 3/1s is exactly 3 per second, also after eleven days. PerSec(3) was one token every 333,333,333 ns.
func TestThrottled_RatesAreExact(t *testing.T) {
	const million = 1_000_000
	play(t, tokenBucket(t, 3*million, "3/1s"),
		step{0, 3 * million, true, 0},
		step{million*time.Second - time.Microsecond, 3 * million, false, time.Microsecond},
		step{time.Microsecond, 3 * million, true, 0},
	)
}

// In throttled, PerSec(0) panics and PerSec(2e9) sets no limit.
func TestThrottled_RatesAreChecked(t *testing.T) {
	if _, err := bucket.ParseRate("0/1s"); err == nil {
		t.Error(`ParseRate("0/1s"): no error`)
	}
	play(t, tokenBucket(t, 2_000_000_000, "2000000000/1s"),
		step{0, 2_000_000_000, true, 0},
		step{0, 2000, false, time.Microsecond},
		step{time.Microsecond, 2000, true, 0},
	)
}

func TestThrottled_Never(t *testing.T) {
	play(t, tokenBucket(t, 6, "20/1m"), step{0, 7, false, bucket.Never})
}

// throttled tries a compare-and-swap ten times, so a hot key gets errors.
func TestThrottled_HotKeyIsDecided(t *testing.T) {
	l := keyed.Must("1/1h", 100)
	var admitted atomic.Int64
	var all sync.WaitGroup
	for range 64 {
		all.Go(func() {
			for range 100 {
				if l.Allow("k") {
					admitted.Add(1)
				}
			}
		})
	}
	all.Wait()
	if got := admitted.Load(); got != 100 {
		t.Errorf("%d of 6400 admitted, want the 100 that are there", got)
	}
}

// A bounded cache that evicts by age resets clients that can invent many keys.
func TestThrottled_FloodForgetsNobody(t *testing.T) {
	limit := compile(t, tokenBucket(t, 1, "1/1h"))
	l, err := keyed.New(limit, keyed.Config{MaxKeys: 1000})
	if err != nil {
		t.Fatal(err)
	}
	l.Allow("attacker")
	for i := range 10_000 {
		l.Allow("key " + strconv.Itoa(i))
	}
	if l.Allow("attacker") {
		t.Error("a second token within the hour, after a flood of other keys")
	}
}
