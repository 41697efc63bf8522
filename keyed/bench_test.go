// SPDX-License-Identifier: Apache-2.0

package keyed_test

import (
	"testing"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/keyed"
	"github.com/metehq/mete/memstore"
)

// BenchmarkAllow compares Allow with the store's TakeOne, which it calls.
func BenchmarkAllow(b *testing.B) {
	limit, err := bucket.NewLimit(1_000_000_000*bucket.Token, bucket.PerSecond(1000*bucket.Token))
	if err != nil {
		b.Fatal(err)
	}
	l, err := keyed.New(limit, keyed.Config{})
	if err != nil {
		b.Fatal(err)
	}
	store, err := memstore.New(memstore.Config{})
	if err != nil {
		b.Fatal(err)
	}
	const key = "user:00000000000"
	for name, call := range map[string]func(){
		"allow":    func() { l.Allow(key) },
		"take":     func() { l.Take(key, 1) },
		"take one": func() { store.TakeOne(key, &limit, bucket.Token) },
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				call()
			}
		})
	}
}
