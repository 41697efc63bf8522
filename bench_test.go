// SPDX-License-Identifier: Apache-2.0

package mete_test

import (
	"fmt"
	"testing"

	"github.com/metehq/mete"
	"github.com/metehq/mete/memstore"
)

func BenchmarkTake(b *testing.B) {
	for _, bc := range []struct{ name, text string }{
		{"one rule", `{"name": "user", "limit_keys": ["header:x-user"], "algorithm_config": {"rps": 1000, "burst": 1000000000}}`},
		{"three rules", `{"rules": [
			{"name": "user", "limit_keys": ["header:x-user"], "algorithm_config": {"rps": 1000, "burst": 1000000000}},
			{"name": "address", "limit_keys": ["ip:address"], "algorithm_config": {"rps": 1000, "burst": 1000000000}},
			{"name": "everyone", "limit_keys": [], "algorithm_config": {"rps": 1000, "burst": 1000000000}}]}`},
	} {
		b.Run(bc.name, func(b *testing.B) {
			store, err := memstore.New(memstore.Config{})
			if err != nil {
				b.Fatal(err)
			}
			l, err := mete.New(store, load(b, bc.text), mete.Config{})
			if err != nil {
				b.Fatal(err)
			}
			req := mete.Request{Attributes: mete.Attrs{"header:x-user": "alice", "ip:address": "2001:db8::1"}}
			b.Run("serial", func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					l.Take(b.Context(), req)
				}
			})
			b.Run("parallel", func(b *testing.B) {
				b.ReportAllocs()
				b.RunParallel(func(pb *testing.PB) {
					for pb.Next() {
						l.Take(b.Context(), req)
					}
				})
			})
		})
	}
}

// BenchmarkTake_Charges takes without a policy.
func BenchmarkTake_Charges(b *testing.B) {
	store, err := memstore.New(memstore.Config{})
	if err != nil {
		b.Fatal(err)
	}
	l, err := mete.New(store, nil, mete.Config{})
	if err != nil {
		b.Fatal(err)
	}
	big := limit(b, 1_000_000_000, "1000/1s")
	charges := []mete.Charge{
		{Key: "user:alice", Limit: big, Cost: 1},
		{Key: "address:2001:db8::1", Limit: big, Cost: 1},
		{Key: "everyone", Limit: big, Cost: 1},
	}
	for _, n := range []int{0, 1, 3} {
		b.Run(fmt.Sprintf("limits=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				l.Take(b.Context(), mete.Request{Charges: charges[:n]})
			}
		})
	}
}

// BenchmarkReserve_Settle reserves 2, uses 1 and settles or cancels.
func BenchmarkReserve_Settle(b *testing.B) {
	store, err := memstore.New(memstore.Config{})
	if err != nil {
		b.Fatal(err)
	}
	l, err := mete.New(store, nil, mete.Config{})
	if err != nil {
		b.Fatal(err)
	}
	req := mete.Request{Charges: []mete.Charge{{Key: "k", Limit: limit(b, 1_000_000_000, "1000000/1s"), Cost: 2}}}
	for name, end := range map[string]func(*mete.Reservation) error{
		"settle": func(r *mete.Reservation) error { return r.Settle(b.Context(), 1) },
		"cancel": func(r *mete.Reservation) error { return r.Cancel(b.Context()) },
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				r, err := l.Reserve(b.Context(), req)
				if err == nil {
					err = end(r)
				}
				if err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
