// SPDX-License-Identifier: Apache-2.0

package prose_test

import (
	"testing"
	"time"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/prose"
)

func TestDuration(t *testing.T) {
	for _, tt := range []struct {
		d    time.Duration
		want string
	}{
		{0, "0s"},
		{1, "1ns"},
		{time.Microsecond, "1µs"},
		{976_543_210, "977ms"},
		{999_000_001, "1s"},
		{1500 * time.Millisecond, "1.5s"},
		{59_990 * time.Millisecond, "1m"},
		{time.Minute + 1, "1m1s"},
		{90 * time.Second, "1m30s"},
		{time.Hour, "1h"},
		{time.Hour + time.Second, "1h0m1s"},
		{time.Hour + time.Minute, "1h1m"},
		{10 * time.Minute, "10m"},
		{20 * time.Hour, "20h"},
		{24*time.Hour - 1, "1d"},
		{216 * time.Hour, "9d"},
		{216*time.Hour + 90*time.Minute, "9d1h30m"},
		{24*time.Hour + time.Second, "1d1s"},
		{bucket.Never - 1, "106751d23h47m16.854775806s"},
		{bucket.Never, "never"},
	} {
		if got := prose.Duration(tt.d); got != tt.want {
			t.Errorf("Duration(%d) = %q, want %q", tt.d, got, tt.want)
		}
	}
}

func TestCount(t *testing.T) {
	for _, tt := range []struct{ got, want string }{
		{prose.Count(0, "rule"), "0 rules"},
		{prose.Count(1, "rule"), "1 rule"},
		{prose.Count(int64(2), "rule"), "2 rules"},
		{prose.Count(1, "line was", "lines were"), "1 line was"},
		{prose.Count(2, "line was", "lines were"), "2 lines were"},
	} {
		if tt.got != tt.want {
			t.Errorf("got %q, want %q", tt.got, tt.want)
		}
	}
}
