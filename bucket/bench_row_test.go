// SPDX-License-Identifier: Apache-2.0

package bucket_test

import (
	"fmt"
	"testing"

	"github.com/metehq/mete/bucket"
)

// BenchmarkRow takes from a row with several accounts.
func BenchmarkRow(b *testing.B) {
	for accounts := 1; accounts <= bucket.MaxAccounts; accounts++ {
		b.Run(fmt.Sprintf("%d accounts", accounts), func(b *testing.B) {
			limits := make([]bucket.Limit, accounts)
			for i := range limits {
				limits[i] = limit(b, "1000000", fmt.Sprintf("%d/1s", 1000+i))
			}
			var row bucket.Row
			now := bucket.Instant(1_700_000_000_000_000)
			take := func(l *bucket.Limit) {
				s, _ := row.StateFor(l, now)
				after, v := l.Spend(s, now, 1, 0)
				if v.Allowed() {
					row = row.WithState(l, after, now, 1)
				}
			}
			for i := range limits {
				take(&limits[i])
			}
			b.ReportAllocs()
			for b.Loop() {
				now++
				take(&limits[0])
			}
		})
	}
}

// BenchmarkCancel cancels each take at once.
func BenchmarkCancel(b *testing.B) {
	l := limit(b, "1000000", "1000/1s")
	now := bucket.Instant(1_700_000_000_000_000)
	s, _ := l.Take(bucket.State{}, now, 1000)
	b.ReportAllocs()
	for b.Loop() {
		after, snap := l.Take(s, now, 1000)
		s = l.Cancel(after, now, 1000, snap.Taken())
	}
}
