// SPDX-License-Identifier: Apache-2.0

package redisstore_test

import (
	"encoding/binary"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/proctest"
	"github.com/metehq/mete/redisstore"
	"github.com/metehq/mete/store"
	"github.com/metehq/mete/storetest"
)

// BenchmarkSlots takes and releases a slot beside others of its key. The metric us/call is the time of one call in Redis,
// from its own statistics.
func BenchmarkSlots(b *testing.B) {
	client := connect(b, proctest.StartRedis(b).Addr)
	l, _, err := bucket.Spec{Algorithm: bucket.AlgorithmConcurrency, Rate: bucket.Rate{Tokens: bucket.MaxSlots * bucket.Token, Per: time.Hour}}.Compile()
	if err != nil {
		b.Fatal(err)
	}
	for _, others := range []int{0, 100, bucket.MaxSlots - 1} {
		b.Run(fmt.Sprintf("others=%d", others), func(b *testing.B) {
			s := open(b, client, redisstore.Config{Prefix: fmt.Sprint(others, ":")})
			take := func(number int) []store.Charge {
				c := store.Charge{Key: "k", Limit: l, Cost: bucket.Token, Slot: bucket.SlotID{1}}
				binary.BigEndian.PutUint32(c.Slot[12:], uint32(number))
				if _, allowed, err := s.Take(b.Context(), nil, []store.Charge{c}, mete.Mode{}); err != nil || !allowed {
					b.Fatalf("denied, %v", err)
				}
				return []store.Charge{c}
			}
			for i := range others {
				take(i)
			}
			client.Do(b.Context(), client.B().ConfigResetstat().Build())
			for b.Loop() {
				if err := s.Refund(b.Context(), storetest.Refunds(take(others)...), ""); err != nil {
					b.Fatal(err)
				}
			}
			info, err := client.Do(b.Context(), client.B().Info().Section("commandstats").Build()).ToString()
			var calls int
			var spent, each float64
			if _, after, found := strings.Cut(info, "cmdstat_evalsha:"); err != nil || !found {
				b.Fatalf("no statistics: %v", err)
			} else if _, err := fmt.Sscanf(after, "calls=%d,usec=%f,usec_per_call=%f", &calls, &spent, &each); err != nil {
				b.Fatal(err)
			}
			b.ReportMetric(each, "us/call")
		})
	}
}
