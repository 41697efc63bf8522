// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"encoding/json"
	"math"
	"testing"
	"time"

	"github.com/metehq/mete/api"
	"github.com/metehq/mete/bucket"
)

func TestSeconds(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0:                               "0",
		time.Microsecond:                "0.000001",
		100 * time.Millisecond:          "0.1",
		300 * time.Millisecond:          "0.3", // as a float, 3·0.1 is 0.30000000000000004
		1_000_001 * time.Microsecond:    "1.000001",
		123_456_789 * time.Microsecond:  "123.456789",
		10 * time.Second:                "10",
		292 * 365 * 24 * time.Hour:      "9208512000",
		math.MaxInt64 / 1000 * 1000:     "9223372036.854775",
		bucket.Never:                    "null",
		time.Second + time.Nanosecond:   "1.000001", // never too early
		time.Second + 999:               "1.000001",
		time.Second - time.Nanosecond:   "1",
		86399999999 * time.Microsecond:  "86399.999999",
		500*time.Hour + time.Nanosecond: "1800000.000001",
	} {
		got, err := json.Marshal(api.Seconds(d))
		if err != nil || string(got) != want {
			t.Errorf("%v: got %s and error %v, want %s", d, got, err, want)
		}
		var back api.Seconds
		if err := json.Unmarshal([]byte(want), &back); err != nil {
			t.Errorf("%s: %v", want, err)
		} else if lost := back.Duration() - d; lost < 0 || lost >= time.Microsecond {
			t.Errorf("%s: got %v back, want %v", want, back.Duration(), d)
		}
	}
}

func TestSeconds_Refuses(t *testing.T) {
	for _, text := range []string{`-1`, `0.0000001`, `1e3`, `"1"`, `true`, `9223372036.854776`, `99999999999999999999`, `{}`} {
		var s api.Seconds
		if err := json.Unmarshal([]byte(text), &s); err == nil {
			t.Errorf("%s: got %v, want an error", text, s.Duration())
		}
	}
}

func TestAppendMicros(t *testing.T) {
	for _, tt := range []struct {
		micros int64
		want   string
	}{
		{0, "0"}, {1, "0.000001"}, {100_000, "0.1"}, {1_000_000, "1"}, {1_050_000, "1.05"},
		{12_000_001, "12.000001"}, {86_400_000_000, "86400"}, {math.MaxInt64, "9223372036854.775807"},
	} {
		if got := string(api.AppendMicros([]byte("x"), tt.micros)); got != "x"+tt.want {
			t.Errorf("AppendMicros(%d) = %q, want %q", tt.micros, got, "x"+tt.want)
		}
	}
}

func TestSecondsAppend(t *testing.T) {
	for _, tt := range []struct {
		d    time.Duration
		want string
	}{
		{0, "0"}, {1, "0.000001"}, {time.Microsecond, "0.000001"}, {time.Microsecond + 1, "0.000002"},
		{1500 * time.Millisecond, "1.5"}, {bucket.Never - 1, "9223372036.854776"}, {bucket.Never, "null"},
	} {
		if got := string(api.Seconds(tt.d).Append(nil)); got != tt.want {
			t.Errorf("Seconds(%d).Append = %q, want %q", tt.d, got, tt.want)
		}
	}
}

func TestAmount(t *testing.T) {
	for text, want := range map[string]bucket.Tokens{
		"0": 0, "20": 20 * bucket.Token, "0.001": 1, "4.25": 4250, "-2.5": -2500, "9007199254740.99": 9007199254740990,
	} {
		var a api.Amount
		if err := json.Unmarshal([]byte(text), &a); err != nil || a.Tokens() != want {
			t.Errorf("%s: got %d and error %v, want %d", text, int64(a), err, int64(want))
		}
		if back, err := json.Marshal(a); err != nil || string(back) != text {
			t.Errorf("%s: got %s and error %v back", text, back, err)
		}
	}
	for _, text := range []string{`0.0001`, `"1"`, `null`, `true`, `--1`, `{}`} {
		var a api.Amount
		if err := json.Unmarshal([]byte(text), &a); err == nil {
			t.Errorf("%s: got %v, want an error", text, a)
		}
	}
}
