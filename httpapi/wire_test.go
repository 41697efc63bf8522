// SPDX-License-Identifier: Apache-2.0

package httpapi_test

import (
	"encoding/json"
	"math"
	"testing"
	"time"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/httpapi"
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
		got, err := json.Marshal(httpapi.Seconds(d))
		if err != nil || string(got) != want {
			t.Errorf("%v: got %s and error %v, want %s", d, got, err, want)
		}
		var back httpapi.Seconds
		if err := json.Unmarshal([]byte(want), &back); err != nil {
			t.Errorf("%s: %v", want, err)
		} else if lost := back.Duration() - d; lost < 0 || lost >= time.Microsecond {
			t.Errorf("%s: got %v back, want %v", want, back.Duration(), d)
		}
	}
}

func TestSeconds_Refuses(t *testing.T) {
	for _, text := range []string{`-1`, `0.0000001`, `1e3`, `"1"`, `true`, `9223372036.854776`, `99999999999999999999`, `{}`} {
		var s httpapi.Seconds
		if err := json.Unmarshal([]byte(text), &s); err == nil {
			t.Errorf("%s: got %v, want an error", text, s.Duration())
		}
	}
}
