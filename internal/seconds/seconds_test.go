// SPDX-License-Identifier: Apache-2.0

package seconds_test

import (
	"math"
	"testing"
	"time"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/seconds"
)

func TestAppend(t *testing.T) {
	for _, tt := range []struct {
		micros int64
		want   string
	}{
		{0, "0"}, {1, "0.000001"}, {100_000, "0.1"}, {1_000_000, "1"}, {1_050_000, "1.05"},
		{12_000_001, "12.000001"}, {86_400_000_000, "86400"}, {math.MaxInt64, "9223372036854.775807"},
	} {
		if got := string(seconds.Append([]byte("x"), tt.micros)); got != "x"+tt.want {
			t.Errorf("Append(%d) = %q, want %q", tt.micros, got, "x"+tt.want)
		}
	}
}

func TestAppendDuration(t *testing.T) {
	for _, tt := range []struct {
		d    time.Duration
		want string
	}{
		{0, "0"}, {1, "0.000001"}, {time.Microsecond, "0.000001"}, {time.Microsecond + 1, "0.000002"},
		{1500 * time.Millisecond, "1.5"}, {bucket.Never - 1, "9223372036.854776"}, {bucket.Never, "null"},
	} {
		if got := string(seconds.AppendDuration(nil, tt.d)); got != tt.want {
			t.Errorf("AppendDuration(%d) = %q, want %q", tt.d, got, tt.want)
		}
	}
}
