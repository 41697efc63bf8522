// SPDX-License-Identifier: Apache-2.0

package keyed_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/keyed"
)

// clock is a manual clock.
type clock struct{ now bucket.Instant }

func newLimiter(t testing.TB, spec bucket.Spec, c *clock) *keyed.Limiter {
	t.Helper()
	limit, _, err := spec.Compile()
	if err != nil {
		t.Fatal(err)
	}
	l, err := keyed.New(limit, keyed.Config{Now: func() bucket.Instant { return c.now }})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// three holds 3 tokens, refilled at one per second.
var three = bucket.Spec{Capacity: 3 * bucket.Token, Rate: bucket.PerSecond(bucket.Token)}

func TestAllow(t *testing.T) {
	c := &clock{now: bucket.At(time.Unix(1_700_000_000, 0))}
	l := newLimiter(t, three, c)
	for i, tt := range []struct {
		after time.Duration // since the step before
		key   string
		want  bool
	}{
		{0, "a", true}, {0, "a", true}, {0, "a", true}, {0, "a", false},
		{0, "b", true},
		{time.Second - time.Microsecond, "a", false},
		{time.Microsecond, "a", true},
		{-time.Minute, "a", false}, // a clock that steps back gives nothing
		{time.Minute, "a", false},
	} {
		c.now = c.now.Add(tt.after)
		if got := l.Allow(tt.key); got != tt.want {
			t.Errorf("step %d: Allow(%q) = %v, want %v", i, tt.key, got, tt.want)
		}
	}
}

func TestTake(t *testing.T) {
	l := newLimiter(t, three, &clock{})
	for i, tt := range []struct {
		cost       int
		allowed    bool
		remaining  int64
		retryAfter time.Duration
	}{
		{2, true, 1, 0},
		{2, false, 1, time.Second},
		{0, true, 1, 0},
		{1, true, 0, 0},
		{3, false, 0, 3 * time.Second},
		{4, false, 0, bucket.Never},
		{-1, false, 0, bucket.Never},
		{math.MinInt, false, 0, bucket.Never},
		{math.MaxInt, false, 0, bucket.Never},
		{math.MaxInt/1000 + 1, false, 0, bucket.Never},
	} {
		got := l.Take("a", tt.cost)
		if got.Allowed != tt.allowed || got.Remaining().Whole() != tt.remaining || got.RetryAfter != tt.retryAfter {
			t.Errorf("step %d: Take(a, %d): allowed %v, %d remaining, retry after %v; want %v, %d, %v", i, tt.cost,
				got.Allowed, got.Remaining().Whole(), got.RetryAfter, tt.allowed, tt.remaining, tt.retryAfter)
		}
	}
}

func TestTakeUpTo(t *testing.T) {
	c := &clock{}
	l := newLimiter(t, three, c)
	for i, tt := range []struct {
		after time.Duration
		cost  int
		taken int64 // 0: denied
	}{
		{0, 2, 2},
		{500 * time.Millisecond, 5, 1},
		{0, 5, 0},
		{500 * time.Millisecond, math.MaxInt, 1},
		{time.Hour, math.MaxInt, 3},
		{time.Hour, -1, 0},
	} {
		c.now = c.now.Add(tt.after)
		got := l.TakeUpTo("a", tt.cost)
		if got.Allowed != (tt.taken > 0) || got.Allowed && got.Cost != bucket.Tokens(tt.taken)*bucket.Token {
			t.Errorf("step %d: TakeUpTo(a, %d): allowed %v, took %v, want %d", i, tt.cost, got.Allowed, got.Cost, tt.taken)
		}
	}
}

func TestPeek_TakesNothing(t *testing.T) {
	l := newLimiter(t, three, &clock{})
	for range 5 {
		if got := l.Peek("a", 3); !got.Allowed {
			t.Fatalf("Peek(a, 3) of a full bucket: denied, retry after %v", got.RetryAfter)
		}
	}
	l.Take("a", 1)
	if got := l.Peek("a", 3); got.Allowed || got.RetryAfter != time.Second {
		t.Errorf("Peek(a, 3) with 2 left: allowed %v, retry after %v, want 1s", got.Allowed, got.RetryAfter)
	}
}

func TestRefundAndReset(t *testing.T) {
	l := newLimiter(t, three, &clock{})
	remaining := func() int64 { return l.Peek("a", 0).Remaining().Whole() }
	l.Take("a", 3)
	for i, step := range []struct {
		do   func()
		want int64
	}{
		{func() { l.Refund("a", 1) }, 1},
		{func() { l.Refund("a", -5) }, 1},
		{func() { l.Refund("b", 5) }, 1},
		{func() { l.Refund("a", 5) }, 3}, // never above the capacity
		{func() { l.Take("a", 3) }, 0},
		{func() { l.Refund("a", math.MaxInt) }, 3},
		{func() { l.Take("a", 3); l.Reset("a") }, 3},
		{func() { l.Reset("nobody") }, 3},
	} {
		step.do()
		if got := remaining(); got != step.want {
			t.Errorf("after step %d: %d remaining, want %d", i, got, step.want)
		}
	}
}

// With anchor: key, keys do not get their tokens at the same instant.
func TestAllow_IntervalsOfTheKey(t *testing.T) {
	c := &clock{now: bucket.At(time.Unix(1_700_000_000, 0))}
	l := newLimiter(t, bucket.Spec{
		Algorithm: bucket.AlgorithmStepped, Anchor: bucket.AnchorKey,
		Capacity: bucket.Token, Rate: bucket.Rate{Tokens: bucket.Token, Per: time.Hour},
	}, c)
	keys := []string{"a", "b", "c", "d", "e", "f"}
	waits := map[time.Duration]bool{}
	for _, key := range keys {
		if !l.Allow(key) {
			t.Fatalf("Allow(%q) of a full bucket: denied", key)
		}
		waits[l.Peek(key, 1).RetryAfter] = true
	}
	if len(waits) != len(keys) {
		t.Errorf("%d keys wait for %d different instants: %v", len(keys), len(waits), waits)
	}
}

func TestNew_RefusesBadConfig(t *testing.T) {
	limit, err := bucket.NewLimit(bucket.Token, bucket.PerSecond(bucket.Token))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := keyed.New(bucket.Limit{}, keyed.Config{}); err == nil || !strings.Contains(err.Error(), "limit is required") {
		t.Errorf("New without a limit: error %v", err)
	}
	if _, err := keyed.New(limit, keyed.Config{MaxKeys: -1}); err == nil || !strings.Contains(err.Error(), "max keys -1") {
		t.Errorf("New with max keys -1: error %v", err)
	}
}

func TestMust_PanicsOnMistakes(t *testing.T) {
	for _, tt := range []struct {
		rate     string
		capacity int
	}{{"", 1}, {"10", 1}, {"0/s", 1}, {"-1/s", 1}, {"10/s", -1}, {"10/s", math.MaxInt}} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("Must(%q, %d) did not panic", tt.rate, tt.capacity)
				}
			}()
			keyed.Must(tt.rate, tt.capacity)
		}()
	}
}

func TestAllocations(t *testing.T) {
	l := keyed.Must("1/1h", 1)
	l.Allow("spent")
	many := keyed.Must("1000000/s", 1000000)
	for name, call := range map[string]func(){
		"Allow":         func() { many.Allow("a") },
		"Allow, denied": func() { l.Allow("spent") },
		"Take":          func() { many.Take("a", 2) },
	} {
		if got := testing.AllocsPerRun(100, call); got != 0 {
			t.Errorf("%s: %v allocations, want 0", name, got)
		}
	}
}
