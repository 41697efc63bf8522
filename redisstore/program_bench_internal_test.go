// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"fmt"
	"strings"
	"testing"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/store"
)

// BenchmarkProgram measures the local cost of a batch of 64 takes: building and encoding the program, and reading
// the answer.
func BenchmarkProgram(b *testing.B) {
	l, err := bucket.NewLimit(1000*bucket.Token, bucket.PerSecond(100))
	if err != nil {
		b.Fatal(err)
	}
	for _, keys := range []int{1, 64} {
		b.Run(fmt.Sprintf("keys=%d", keys), func(b *testing.B) {
			var takes []*ask
			for i := range 64 {
				charge := store.Charge{Key: fmt.Sprintf("user:%011d", i%keys), Limit: l, Cost: bucket.Token}
				takes = append(takes, newAsk(opTake, []store.Charge{charge}, mete.Mode{}))
			}
			answer := "1700000000000000" + strings.Repeat(" "+packRow("1000000+1/10", 1500, 1699999999000000), keys) + " 64"
			var p program
			b.ReportAllocs()
			for b.Loop() {
				p.reset("mete:", -1)
				for _, a := range takes {
					p.add(a)
				}
				p.encode()
				p.readAnswers(answer)
				if takes[63].Err != nil {
					b.Fatal(takes[63].Err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/64, "ns/take")
		})
	}
}
