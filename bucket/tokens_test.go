// SPDX-License-Identifier: Apache-2.0

package bucket_test

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/metehq/mete/bucket"
)

// A number outside of the range is still a number.
func TestParseTokens_SaysWhatIsWrong(t *testing.T) {
	for in, want := range map[string]string{"-1": "has a sign", "+1": "has a sign", "one": "not a decimal number", "1e99": "exponent beyond", "": "not a decimal number"} {
		if _, err := bucket.ParseTokens(in); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("ParseTokens(%q): error %v, want one with %q", in, err, want)
		}
	}
}

func TestParseTokens(t *testing.T) {
	tests := []struct {
		in   string
		want bucket.Tokens
		ok   bool
	}{
		{"0", 0, true},
		{"20", 20_000, true},
		{"0.5", 500, true},
		{"0.001", 1, true},
		{"00012.500000", 12_500, true},
		{"1e3", 1_000_000, true},
		{"1E-3", 1, true},
		{"1e+3", 1_000_000, true},
		{"1.0005e1", 10_005, true},
		{"0e40", 0, true},
		{"9007199254740.991", bucket.MaxTokens, true},
		{"9007199254740.992", 0, false},
		{"0.0001", 0, false},
		{"1e-4", 0, false},
		{"1e13", 0, false},
		{"1e40", 0, false},
		{"1e41", 0, false},
		{"1e99999999999999999999", 0, false},
		{"99999999999999999999", 0, false},
		{"", 0, false},
		{" 1", 0, false},
		{"+1", 0, false},
		{"-1", 0, false},
		{"-0", 0, false},
		{".5", 0, false},
		{"5.", 0, false},
		{"1.2.3", 0, false},
		{"1e", 0, false},
		{"e5", 0, false},
		{"1e1e1", 0, false},
		{"nan", 0, false},  // BF7, BC4: one NaN opened the limit for ever
		{"NaN", 0, false},  // and so did its other spellings
		{"inf", 0, false},  // BF7
		{"-inf", 0, false}, // BF7
		{"0x10", 0, false}, // BF7: LuaJIT reads it as 16
		{"1e-9", 0, false}, // BF7: a price of a billionth
		{"1_000", 0, false},
		{"1,5", 0, false},
		{"１", 0, false},
		{"0." + strings.Repeat("0", 1<<16) + "1", 0, false},
		{"1" + strings.Repeat("0", 1<<16), 0, false},
		{"1." + strings.Repeat("0", 1<<16), 1000, true},
	}
	for _, tt := range tests {
		got, err := bucket.ParseTokens(tt.in)
		if got != tt.want || (err == nil) != tt.ok || err != nil && !errors.Is(err, bucket.ErrTokens) {
			t.Errorf("ParseTokens(%.40q) = %v, %v; want %v, ok %v", tt.in, int64(got), err, int64(tt.want), tt.ok)
		}
	}
}

func TestTokens_String(t *testing.T) {
	tests := []struct {
		in    bucket.Tokens
		want  string
		whole int64
	}{
		{0, "0", 0},
		{1, "0.001", 0},
		{500, "0.5", 0},
		{999, "0.999", 0},
		{1000, "1", 1},
		{20_050, "20.05", 20},
		{-1, "-0.001", -1},
		{-1000, "-1", -1},
		{-1001, "-1.001", -2},
		{bucket.MaxTokens, "9007199254740.991", 9007199254740},
		{math.MaxInt64, "9223372036854775.807", 9223372036854775},
		{math.MinInt64, "-9223372036854775.808", -9223372036854776},
	}
	for _, tt := range tests {
		if got := tt.in.String(); got != tt.want {
			t.Errorf("Tokens(%d).String() = %q, want %q", int64(tt.in), got, tt.want)
		}
		if got := tt.in.Whole(); got != tt.whole {
			t.Errorf("Tokens(%d).Whole() = %d, want %d", int64(tt.in), got, tt.whole)
		}
	}
}
