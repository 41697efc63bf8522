// SPDX-License-Identifier: Apache-2.0

package redisstore_test

import (
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/metehq/mete"
	"github.com/metehq/mete/internal/proctest"
	"github.com/metehq/mete/redisstore"
	"github.com/metehq/mete/store"
	"github.com/redis/rueidis"
)

// serverTime is a server's time in microseconds.
func serverTime(t *testing.T, client rueidis.Client) int64 {
	t.Helper()
	v, err := client.Do(t.Context(), client.B().Time().Build()).AsIntSlice()
	if err != nil || len(v) != 2 {
		t.Fatalf("time %v, %v", v, err)
	}
	return v[0]*1_000_000 + v[1]
}

// TestTake_ByTheServersClock proves that the written state has the server's time, to the microsecond.
func TestTake_ByTheServersClock(t *testing.T) {
	client := connect(t, proctest.StartRedis(t).Addr)
	s, err := redisstore.New(client, redisstore.Config{})
	if err != nil {
		t.Fatal(err)
	}
	written := regexp.MustCompile(`(?:@|\n)(\d+) \S+\s?$`)
	for _, name := range []string{"token bucket", "leaky bucket", "from the first", "sliding log"} {
		key := "tb:" + name
		before := serverTime(t, client)
		charges := []store.Charge{{Key: name, Limit: kinds(t)[name], Cost: 1}}
		if _, allowed, err := s.Take(t.Context(), nil, charges, mete.Mode{}); err != nil || !allowed {
			t.Fatalf("%s: allowed %v, %v", name, allowed, err)
		}
		after := serverTime(t, client)
		text, err := client.Do(t.Context(), client.B().Get().Key(key).Build()).ToString()
		if err != nil {
			t.Fatal(err)
		}
		var at int64
		if strings.HasPrefix(text, "2:") {
			at = int64(readState(t, text).AsOf)
		} else if match := written.FindStringSubmatch(text); match == nil {
			t.Fatalf("%s: state %q says no instant", name, text)
		} else if at, err = strconv.ParseInt(match[1], 10, 64); err != nil {
			t.Fatal(err)
		}
		if at < before || at > after {
			t.Errorf("%s: state %q, written between %d and %d", name, text, before, after)
		}
	}
}
