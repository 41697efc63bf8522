// SPDX-License-Identifier: Apache-2.0

package violations_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/pgstore/violations"
)

// BenchmarkRecord records denials of one key, of many keys, and of more keys than fit.
func BenchmarkRecord(b *testing.B) {
	d := newDatabase(b)
	for _, keys := range []int{1, 1000, 1 << 20} {
		denials := make([]*mete.Denial, keys)
		for i := range denials {
			denials[i] = denial("free", fmt.Sprint("free:key=", i), mete.Attrs{"jwt:sub": "alice", "ip:address": "192.0.2.1", "path": "/v1"})
		}
		r := d.recorder(func(c *violations.Config) { c.Window = time.Second })
		b.Run(fmt.Sprintf("keys=%d/serial", keys), func(b *testing.B) {
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				r.Record(b.Context(), denials[i%keys])
			}
		})
		b.Run(fmt.Sprintf("keys=%d/parallel", keys), func(b *testing.B) {
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				for i := 0; pb.Next(); i += 7919 {
					r.Record(b.Context(), denials[i%keys])
				}
			})
		})
		r.Close()
	}
}
