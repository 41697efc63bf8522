// SPDX-License-Identifier: Apache-2.0

package redisstore_test

import (
	"encoding/binary"
	"math"
	"testing"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/proctest"
	"github.com/metehq/mete/redisstore"
	"github.com/metehq/mete/store"
)

// TestRow_PackedNumbers takes from rows of version 2, which store two doubles. A number that is no integer or out of bounds is an
// error, and the row stays.
func TestRow_PackedNumbers(t *testing.T) {
	client := connect(t, proctest.StartRedis(t).Addr)
	now := bucket.Instant(1_700_000_000_250_000)
	s, err := redisstore.New(client, redisstore.Config{Now: func() bucket.Instant { return now }, Timeout: awhile})
	if err != nil {
		t.Fatal(err)
	}
	l := compiled(bucket.Spec{Capacity: 20 * bucket.Token, Rate: bucket.Rate{Tokens: 10 * bucket.Token, Per: time.Second}})
	const most = 1<<53 - 1
	for _, tt := range []struct {
		spent, at float64
		ok        bool
	}{
		{0, float64(now), true}, {1, float64(now), true}, {most, 0, true}, {0, -most, true}, {0, most, true},
		{-1, float64(now), false}, {most + 1, float64(now), false}, {0.5, float64(now), false},
		{math.NaN(), float64(now), false}, {math.Inf(1), float64(now), false}, {math.Inf(-1), float64(now), false},
		{0, -most - 1, false}, {0, most + 1, false}, {0, 0.5, false}, {0, math.NaN(), false}, {0, math.Inf(1), false}, {0, math.Inf(-1), false},
	} {
		row := append([]byte("2:20000+1/100 "), binary.LittleEndian.AppendUint64(nil, math.Float64bits(tt.spent))...)
		row = binary.LittleEndian.AppendUint64(row, math.Float64bits(tt.at))
		if err := client.Do(t.Context(), client.B().Set().Key("tb:k").Value(string(row)).Build()).Error(); err != nil {
			t.Fatal(err)
		}
		_, _, err := s.Take(t.Context(), nil, []store.Charge{{Key: "k", Limit: l, Cost: bucket.Token}}, mete.Mode{})
		if (err == nil) != tt.ok {
			t.Errorf("%v missing at %v: error %v, want none: %v", tt.spent, tt.at, err, tt.ok)
		}
		if after, err := client.Do(t.Context(), client.B().Get().Key("tb:k").Build()).ToString(); err != nil || !tt.ok && after != string(row) {
			t.Errorf("%v missing at %v: the row is now %q, error %v", tt.spent, tt.at, after, err)
		}
	}
}
