// SPDX-License-Identifier: Apache-2.0

package bucket_test

import (
	"errors"
	"math"
	"testing"
	"time"

	"github.com/metehq/mete/bucket"
)

func TestSpecCompile_Bounds(t *testing.T) {
	const most = bucket.MaxTokens
	second, micro := bucket.PerSecond(bucket.Token), bucket.Rate{Tokens: 1, Per: time.Microsecond}
	reserved := func(n bucket.Tokens) *bucket.Tokens { return &n }
	tests := []struct {
		name string
		spec bucket.Spec
		ok   bool
	}{
		{"the usual", bucket.Spec{Capacity: 20_000, Rate: second}, true},
		{"capacity 0", bucket.Spec{Rate: second}, true},
		{"capacity below 0", bucket.Spec{Capacity: -1, Rate: second}, false},
		{"lowest capacity", bucket.Spec{Capacity: math.MinInt64, Rate: second}, false},
		{"largest capacity", bucket.Spec{Capacity: most, Rate: micro}, true},
		{"above it", bucket.Spec{Capacity: most + 1, Rate: micro}, false},
		{"highest capacity", bucket.Spec{Capacity: math.MaxInt64, Rate: micro}, false},
		{"rate below the capacity's grain", bucket.Spec{Capacity: most, Rate: second}, false},
		{"zero spec", bucket.Spec{}, false},
		{"rate 0", bucket.Spec{Capacity: 1000, Rate: bucket.Rate{Per: time.Second}}, false},
		{"rate below 0", bucket.Spec{Capacity: 1000, Rate: bucket.PerSecond(-1)}, false},
		{"largest rate", bucket.Spec{Capacity: 1000, Rate: bucket.Rate{Tokens: most, Per: time.Microsecond}}, true},
		{"above it", bucket.Spec{Capacity: 1000, Rate: bucket.Rate{Tokens: most + 1, Per: time.Microsecond}}, false},
		{"period 0", bucket.Spec{Capacity: 1000, Rate: bucket.Rate{Tokens: 1}}, false},
		{"period below 0", bucket.Spec{Capacity: 1000, Rate: bucket.Rate{Tokens: 1, Per: -time.Second}}, false},
		{"period finer than a microsecond", bucket.Spec{Capacity: 1000, Rate: bucket.Rate{Tokens: 1, Per: 1500}}, false},
		{"largest period", bucket.Spec{Capacity: 0, Rate: bucket.Rate{Tokens: 3000, Per: math.MaxInt64 / 1000 * 1000}}, true},
		{"one a year", bucket.Spec{Capacity: 1000, Rate: bucket.Rate{Tokens: 1000, Per: 365 * 24 * time.Hour}}, true},
		{"no debt", bucket.Spec{Capacity: 1000, Rate: second, MaxReserved: reserved(0)}, true},
		{"debt below 0", bucket.Spec{Capacity: 1000, Rate: second, MaxReserved: reserved(-1)}, false},
		{"capacity and debt to the bound", bucket.Spec{Capacity: 1000, Rate: micro, MaxReserved: reserved(most - 1000)}, true},
		{"and above", bucket.Spec{Capacity: 1000, Rate: micro, MaxReserved: reserved(most - 999)}, false},
		{"highest debt", bucket.Spec{Capacity: 1000, Rate: micro, MaxReserved: reserved(math.MaxInt64)}, false},
	}
	for _, tt := range tests {
		l, _, err := tt.spec.Compile()
		if (err == nil) != tt.ok {
			t.Errorf("%s: %+v compiled to %v, %v; want ok %v", tt.name, tt.spec, l, err, tt.ok)
		}
		if err != nil && (!errors.Is(err, bucket.ErrLimit) || l != bucket.Limit{}) {
			t.Errorf("%s: %v, %v: want the zero limit and ErrLimit", tt.name, l, err)
		}
	}
	if _, _, err := (bucket.Spec{Capacity: 1}).Compile(); !errors.Is(err, bucket.ErrRate) {
		t.Errorf("a bad rate: %v, want ErrRate, too", err)
	}
}

func TestLimit_Accessors(t *testing.T) {
	l, err := bucket.NewLimit(20*bucket.Token, bucket.Rate{Tokens: 7 * bucket.Token, Per: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	if n, p := l.Refill(); n != 7 || p != 60_000 {
		t.Errorf("refill %d/%d, want 7/60000", int64(n), p)
	}
	if got := l.Capacity(); got != 20*bucket.Token {
		t.Errorf("capacity %v, want 20", got)
	}
	if got, want := l.MaxReserved(), bucket.Tokens((1<<53-1)/60_000-20_000); got != want {
		t.Errorf("max reserved %v, want all that 2^53 leaves: %v", got, want)
	}
	if same, _ := bucket.NewLimit(20*bucket.Token, bucket.Rate{Tokens: 14 * bucket.Token, Per: 2 * time.Minute}); same != l {
		t.Errorf("14/2m compiles to %v, want it equal to 7/1m", same)
	}
	if _, err := bucket.NewLimit(-1, bucket.PerSecond(1)); !errors.Is(err, bucket.ErrLimit) {
		t.Errorf("NewLimit(-1): %v, want ErrLimit", err)
	}
}

func TestLimit_TimeFor(t *testing.T) {
	l, _ := bucket.NewLimit(20*bucket.Token, bucket.PerSecond(3*bucket.Token))
	for _, tt := range []struct {
		limit bucket.Limit
		in    bucket.Tokens
		want  time.Duration
	}{
		{l, 0, 0},
		{l, -5, 0},
		{l, bucket.Token, 333_334 * time.Microsecond},
		{l, 3 * bucket.Token, time.Second},
		{l, bucket.MaxTokens, bucket.Never},
		{l, math.MaxInt64, bucket.Never},
		{bucket.Limit{}, 1, bucket.Never},
		{bucket.Limit{}, 0, 0},
	} {
		if got := tt.limit.TimeFor(tt.in); got != tt.want {
			t.Errorf("%v: TimeFor(%v) = %v, want %v", tt.limit, tt.in, got, tt.want)
		}
	}
}

func TestLimit_String(t *testing.T) {
	for _, tt := range []struct {
		capacity, rate, want string
	}{
		{"20", "10/1s", "capacity 20, refill 10/1s"},
		{"20", "0.5/1s", "capacity 20, refill 0.5/1s"},
		{"100", "7/1m", "capacity 100, refill 7/1m0s"},
		{"1", "1/3s", "capacity 1, refill 20/1m0s"},
		{"5", "1/1h", "capacity 5, refill 1/1h0m0s"},
		{"5", "1/1d", "capacity 5, refill 1/24h0m0s"},
		{"5", "1/365d", "capacity 5, refill 0.001/8h45m36s"},
	} {
		capacity, _ := bucket.ParseTokens(tt.capacity)
		rate, _ := bucket.ParseRate(tt.rate)
		l, err := bucket.NewLimit(capacity, rate)
		if got := l.String(); got != tt.want || err != nil {
			t.Errorf("%s at %s: %q, %v; want %q", tt.capacity, tt.rate, got, err, tt.want)
		}
	}
	if got, want := (bucket.Limit{}).String(), "capacity 0, refill 0/0s"; got != want {
		t.Errorf("zero limit: %q, want %q", got, want)
	}
}
