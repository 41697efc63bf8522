// SPDX-License-Identifier: Apache-2.0

package bucket_test

import (
	"errors"
	"math"
	"math/big"
	"testing"
	"time"

	"github.com/metehq/mete/bucket"
)

func TestParseRate(t *testing.T) {
	tests := []struct {
		in   string
		want bucket.Rate
		ok   bool
	}{
		{"7/1m", bucket.Rate{Tokens: 7000, Per: time.Minute}, true},
		{"0.5/10s", bucket.Rate{Tokens: 500, Per: 10 * time.Second}, true},
		{"7/m", bucket.Rate{Tokens: 7000, Per: time.Minute}, true},
		{"7/d", bucket.Rate{Tokens: 7000, Per: 24 * time.Hour}, true},
		{" 7 / 1m ", bucket.Rate{Tokens: 7000, Per: time.Minute}, true},
		{"7/ m", bucket.Rate{Tokens: 7000, Per: time.Minute}, true},
		{"7/.5s", bucket.Rate{Tokens: 7000, Per: 500 * time.Millisecond}, true}, // not 1.5 s
		{"1e3/1s", bucket.Rate{Tokens: 1_000_000, Per: time.Second}, true},
		{"7/1us", bucket.Rate{Tokens: 7000, Per: time.Microsecond}, true},
		{"7", bucket.Rate{}, false},
		{"7/", bucket.Rate{}, false},
		{"/1m", bucket.Rate{}, false},
		{"/", bucket.Rate{}, false},
		{"7/5", bucket.Rate{}, false},
		{"7/.s", bucket.Rate{}, false},
		{"7/h30m", bucket.Rate{}, false},
		{"7/-1m", bucket.Rate{}, false},
		{"-7/1m", bucket.Rate{}, false},
		{"7/1m/1s", bucket.Rate{}, false},
		{"0/1s", bucket.Rate{}, false},  // BE9, BL8
		{"7/0s", bucket.Rate{}, false},  // a division by zero
		{"7/1ns", bucket.Rate{}, false}, // finer than a microsecond
		{"7/1.5us", bucket.Rate{}, false},
		{"nan/1s", bucket.Rate{}, false},
	}
	for _, tt := range tests {
		got, err := bucket.ParseRate(tt.in)
		if (err == nil) != tt.ok || err != nil && !errors.Is(err, bucket.ErrRate) || tt.ok && got != tt.want {
			t.Errorf("ParseRate(%q) = %v, %v; want %v, ok %v", tt.in, got, err, tt.want, tt.ok)
		}
	}
}

func TestParsePerSecond(t *testing.T) {
	tests := []struct {
		in   string
		want bucket.Rate
		ok   bool
	}{
		{"100", bucket.PerSecond(100_000), true},
		{"0.5", bucket.PerSecond(500), true},
		{"0.001", bucket.PerSecond(1), true},
		{"0.0001", bucket.Rate{Tokens: 1, Per: 10 * time.Second}, true},
		{"0.016667", bucket.Rate{Tokens: 16667, Per: 1000 * time.Second}, true},
		{"1e-9", bucket.Rate{Tokens: 1, Per: 1_000_000 * time.Second}, true},
		{"9007199254740.991", bucket.PerSecond(bucket.MaxTokens), true},
		{"9007199254741", bucket.Rate{}, false},
		{"1e-12", bucket.Rate{}, false},
		{"1e-40", bucket.Rate{}, false},
		{"1e40", bucket.Rate{}, false},
		{"0", bucket.Rate{}, false},
		{"0.0", bucket.Rate{}, false},
		{"-1", bucket.Rate{}, false},
		{"inf", bucket.Rate{}, false},
		{"", bucket.Rate{}, false},
	}
	for _, tt := range tests {
		got, err := bucket.ParsePerSecond(tt.in)
		if (err == nil) != tt.ok || err != nil && !errors.Is(err, bucket.ErrRate) || tt.ok && got != tt.want {
			t.Errorf("ParsePerSecond(%q) = %v, %v; want %v, ok %v", tt.in, got, err, tt.want, tt.ok)
		}
	}
}

func TestParseDuration(t *testing.T) {
	const day = 24 * time.Hour
	tests := []struct {
		in   string
		want time.Duration
		ok   bool
	}{
		{"500ms", 500 * time.Millisecond, true},
		{"1m30s", 90 * time.Second, true},
		{"1.5h", 90 * time.Minute, true},
		{".5h", 30 * time.Minute, true},
		{"7us", 7 * time.Microsecond, true},
		{"7µs", 7 * time.Microsecond, true},
		{"7μs", 7 * time.Microsecond, true},
		{"7d", 7 * day, true},
		{"1w", 7 * day, true},
		{"1w2d3h4m5s", 9*day + 3*time.Hour + 4*time.Minute + 5*time.Second, true},
		{"0.5d", 12 * time.Hour, true},
		{".5d", 12 * time.Hour, true},
		{"1.5w", 252 * time.Hour, true},
		{"0s", 0, true},
		{"0.000000000005h", 18 * time.Nanosecond, true},
		{"1000000000000000001ns", 0, false}, // more digits than 2^53 holds
		{"9007199254740991ns", 1<<53 - 1, true},
		{"2562047h47m16.854775807s", math.MaxInt64, true},
		{"2562047h47m16.854775808s", 0, false},
		{"106751d23h47m16.854775807s", math.MaxInt64, true},
		{"106752d", 0, false},
		{"200000h200000d", 0, false},
		{"1.5ns", 0, false}, // nothing is rounded
		{"0.1ns", 0, false},
		{"1.0000000001s", 0, false},
		{"", 0, false},
		{"0", 0, false},
		{"5", 0, false},
		{"d", 0, false},
		{"s", 0, false},
		{".s", 0, false},
		{"-1s", 0, false},
		{"+1s", 0, false},
		{"1d-5h", 0, false},
		{"1d5", 0, false},
		{"1e3d", 0, false},
		{"1..5s", 0, false},
		{"1 s", 0, false},
		{"1y", 0, false},
		{"1D", 0, false},
		{"nan", 0, false},
	}
	for _, tt := range tests {
		got, err := bucket.ParseDuration(tt.in)
		if !tt.ok {
			tt.want = 0
		}
		if got != tt.want || (err == nil) != tt.ok || err != nil && !errors.Is(err, bucket.ErrDuration) {
			t.Errorf("ParseDuration(%q) = %v, %v; want %v, ok %v", tt.in, got, err, tt.want, tt.ok)
		}
	}
}

func TestRate_String(t *testing.T) {
	for _, tt := range []struct {
		in   bucket.Rate
		want string
	}{
		{bucket.PerSecond(10 * bucket.Token), "10/1s"},
		{bucket.Rate{Tokens: 500, Per: time.Minute}, "0.5/1m0s"},
		{bucket.Rate{}, "0/0s"},
	} {
		if got := tt.in.String(); got != tt.want {
			t.Errorf("%#v.String() = %q, want %q", tt.in, got, tt.want)
		}
	}
}

// Numbers with too many digits become the closest lower rate.
func TestParsePerSecond_LongDecimals(t *testing.T) {
	for _, s := range []string{"0.3333333333333333", "16.666666666666668", "3.14159265358979", "0.00001234567890123456789", "123456789.123456789123", "1e-9"} {
		r, err := bucket.ParsePerSecond(s)
		if err != nil {
			t.Errorf("%s: %v", s, err)
			continue
		}
		asked, _ := new(big.Rat).SetString(s)
		got := big.NewRat(int64(r.Tokens), 1000)
		got.Mul(got, big.NewRat(int64(time.Second), int64(r.Per)))
		low := new(big.Rat).Mul(asked, big.NewRat(999_999_999, 1_000_000_000))
		if got.Cmp(asked) > 0 || got.Cmp(low) < 0 {
			t.Errorf("%s: %v a second, want at most that and at least a billionth less", s, got.FloatString(20))
		}
	}
	for _, s := range []string{"1e-30", "0.00000000000000000000000000000012345678901234567890", "99999999999999999999", "1.2.3", "12345678901234567890x"} {
		if r, err := bucket.ParsePerSecond(s); !errors.Is(err, bucket.ErrRate) {
			t.Errorf("%s: %v, error %v; want ErrRate", s, r, err)
		}
	}
}

func TestRate_Over(t *testing.T) {
	for _, tt := range []struct {
		rate string
		d    time.Duration
		want bucket.Tokens
	}{
		{"100/1s", 300 * time.Second, 30_000 * bucket.Token},
		{"7/1m", time.Second, 116}, // 0.11666…
		{"1/1h", time.Microsecond, 0},
		{"5/1s", 0, 0},
		{"5/1s", -time.Second, 0},
		{"9007199254740/1us", 292 * 365 * 24 * time.Hour, bucket.MaxTokens},
	} {
		rate, err := bucket.ParseRate(tt.rate)
		if got := rate.TokensIn(tt.d); got != tt.want || err != nil {
			t.Errorf("%s over %v: %v, error %v; want %v", tt.rate, tt.d, got, err, tt.want)
		}
	}
	if got := (bucket.Rate{}).TokensIn(time.Hour); got != 0 {
		t.Errorf("the zero rate over an hour: %v", got)
	}
}
