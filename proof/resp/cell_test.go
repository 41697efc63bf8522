// SPDX-License-Identifier: Apache-2.0

package resp_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/metehq/mete/respapi"
)

// TestRedisCell_OwnTable runs the table of redis-cell's own tests (src/cell/mod.rs, it_rate_limits): five requests at
// once, and one per second. redis-cell compares durations there; CL.THROTTLE rounds them up to seconds.
func TestRedisCell_OwnTable(t *testing.T) {
	s := serve(t, respapi.Config{})
	c := mustDial(t, dialGoRedis, s.connection())
	for i, row := range []struct {
		at       time.Duration
		quantity int
		want     []any
	}{
		{0, 6, integers(1, 5, 5, -1, 0)}, // more than the limit: never
		{0, 1, integers(0, 5, 4, -1, 1)},
		{0, 1, integers(0, 5, 3, -1, 2)},
		{0, 1, integers(0, 5, 2, -1, 3)},
		{0, 1, integers(0, 5, 1, -1, 4)},
		{0, 1, integers(0, 5, 0, -1, 5)},
		{0, 1, integers(1, 5, 0, 1, 5)},
		{3000 * time.Millisecond, 1, integers(0, 5, 2, -1, 3)},
		{3100 * time.Millisecond, 1, integers(0, 5, 1, -1, 4)}, // 3.9 s
		{4000 * time.Millisecond, 1, integers(0, 5, 1, -1, 4)},
		{8000 * time.Millisecond, 1, integers(0, 5, 4, -1, 1)},
		{9500 * time.Millisecond, 1, integers(0, 5, 4, -1, 1)},
		{9500 * time.Millisecond, 0, integers(0, 5, 4, -1, 1)}, // quantity 0 looks
		{9500 * time.Millisecond, 2, integers(0, 5, 2, -1, 3)},
		{9500 * time.Millisecond, 5, integers(1, 5, 2, 3, 3)},
	} {
		s.at(row.at)
		t.Logf("row %d", i)
		wantReply(t, c, row.want, "CL.THROTTLE", "foo", "4", "1", "1", strconv.Itoa(row.quantity))
	}
}

// The example of redis-cell's README.
func TestRedisCell_Readme(t *testing.T) {
	s := serve(t, respapi.Config{})
	c := mustDial(t, dialGoRedis, s.connection())
	wantReply(t, c, integers(0, 16, 15, -1, 2), "CL.THROTTLE", "user123", "15", "30", "60")
	wantReply(t, c, integers(0, 16, 14, -1, 4), "CL.THROTTLE", "user123", "15", "30", "60", "1")
	wantReply(t, c, integers(0, 16, 15, -1, 2), "CL.THROTTLE", "user123-read-rate", "15", "30", "60")
	wantReply(t, c, integers(0, 6, 5, -1, 6), "CL.THROTTLE", "user123-write-rate", "5", "10", "60")
}

// redis-cell drops the fraction of a millisecond: its client that waits 1 s of 1.0004 s is denied again.
func TestRedisCell_RetryIsNeverTooEarly(t *testing.T) {
	s := serve(t, respapi.Config{})
	c := mustDial(t, dialGoRedis, s.connection())
	wantReply(t, c, integers(0, 1, 0, -1, 2), "CL.THROTTLE", "user", "0", "1", "2")
	s.at(time.Second - 400*time.Microsecond) // 1.0004 s are left
	wantReply(t, c, integers(1, 1, 0, 2, 2), "CL.THROTTLE", "user", "0", "1", "2")
	s.at(2 * time.Second)
	wantReply(t, c, integers(0, 1, 0, -1, 2), "CL.THROTTLE", "user", "0", "1", "2")
}

// Until Redis expires the key, redis-cell answers a quantity above the limit with more than the limit and a negative
// time. Here remaining is 5 + 5, and reset_after is -5.
func TestRedisCell_OversizedAfterIdle(t *testing.T) {
	s := serve(t, respapi.Config{})
	c := mustDial(t, dialGoRedis, s.connection())
	wantReply(t, c, integers(0, 5, 4, -1, 1), "CL.THROTTLE", "user", "4", "1", "1")
	s.at(6 * time.Second)
	wantReply(t, c, integers(1, 5, 5, -1, 0), "CL.THROTTLE", "user", "4", "1", "1", "6")
}

// redis-cell returns tokens for a negative quantity, above the limit too.
func TestRedisCell_NegativeQuantity(t *testing.T) {
	s := serve(t, respapi.Config{})
	c := mustDial(t, dialGoRedis, s.connection())
	wantReply(t, c, integers(0, 5, 4, -1, 1), "CL.THROTTLE", "user", "4", "1", "1")
	wantError(t, c, "quantity", "CL.THROTTLE", "user", "4", "1", "1", "-3")
	wantReply(t, c, integers(0, 5, 3, -1, 2), "CL.THROTTLE", "user", "4", "1", "1")
}

func TestRedisCell_ZeroRates(t *testing.T) {
	s := serve(t, respapi.Config{})
	c := mustDial(t, dialGoRedis, s.connection())
	wantError(t, c, "ERR ", "CL.THROTTLE", "user", "4", "0", "1")
	wantError(t, c, "ERR ", "CL.THROTTLE", "user", "4", "1", "0")
}

// redis-cell keeps the time until a bucket is full. After a change from one per hour to one per second, it denies for
// the rest of the hours (brandur/redis-cell#54). mete keeps the missing tokens, which refill at the new rate.
func TestRedisCell_RaisedRate(t *testing.T) {
	s := serve(t, respapi.Config{})
	c := mustDial(t, dialGoRedis, s.connection())
	wantReply(t, c, integers(0, 2, 1, -1, 3600), "CL.THROTTLE", "user", "1", "1", "3600")
	wantReply(t, c, integers(0, 2, 0, -1, 7200), "CL.THROTTLE", "user", "1", "1", "3600")
	wantReply(t, c, integers(1, 2, 0, 1, 2), "CL.THROTTLE", "user", "1", "1", "1")
	s.at(time.Second)
	wantReply(t, c, integers(0, 2, 0, -1, 2), "CL.THROTTLE", "user", "1", "1", "1")
}
