// SPDX-License-Identifier: Apache-2.0

package bucket_test

import (
	"testing"
	"time"

	"github.com/metehq/mete/bucket"
)

func BenchmarkTake(b *testing.B) {
	l := limit(b, "100", "100/1s")
	for _, bb := range []struct {
		name string
		step bucket.Instant // between two takes
	}{{"admitted", 10_000}, {"denied", 0}, {"full", 10_000_000}} {
		b.Run(bb.name, func(b *testing.B) {
			b.ReportAllocs()
			s, _ := l.Take(bucket.State{}, 0, l.Capacity())
			now := bucket.Instant(0)
			for b.Loop() {
				now += bb.step
				s, _ = l.Take(s, now, bucket.Token)
			}
		})
	}
}

func BenchmarkReserve(b *testing.B) {
	b.ReportAllocs()
	l := limit(b, "100", "100/1s")
	s, _ := l.Take(bucket.State{}, 0, l.Capacity())
	now := bucket.Instant(0)
	for b.Loop() {
		now += 10_000
		s, _ = l.Reserve(s, now, bucket.Token, time.Second)
	}
}

func BenchmarkPeek(b *testing.B) {
	b.ReportAllocs()
	l := limit(b, "100", "100/1s")
	s, _ := l.Take(bucket.State{}, 0, l.Capacity())
	for b.Loop() {
		l.Peek(s, 5_000, bucket.Token, 0)
	}
}

func BenchmarkTakeAll(b *testing.B) {
	b.ReportAllocs()
	states := make([]bucket.State, 4)
	charges := make([]bucket.Charge, len(states))
	for i := range charges {
		charges[i] = bucket.Charge{Limit: limit(b, "100", "100/1s"), Cost: bucket.Token}
	}
	dst := make([]bucket.Snapshot, 0, len(states))
	now := bucket.Instant(0)
	for b.Loop() {
		now += 10_000
		dst, _ = bucket.TakeAll(dst[:0], states, charges, now, 0)
	}
}

func BenchmarkCompile(b *testing.B) {
	for _, rate := range []string{"10/1s", "98765432.109/1s"} { // exact, approximated
		r, err := bucket.ParseRate(rate)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(rate, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := bucket.NewLimit(30_000_000*bucket.Token, r); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
