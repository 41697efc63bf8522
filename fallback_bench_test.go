// SPDX-License-Identifier: Apache-2.0

package mete_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/memstore"
)

// BenchmarkTake_Local takes under a local rule, with and without a store.
func BenchmarkTake_Local(b *testing.B) {
	rule := `{"name": "user", "limit_keys": ["header:x-user"], "on_store_error": "local", "algorithm_config": {"rps": 1000, "burst": 1000000000}}`
	for _, bc := range []struct {
		name, then string
		fault      fault
	}{{"open", "open", up}, {"up", "local", up}, {"down", "local", down}} {
		b.Run(bc.name, func(b *testing.B) {
			store, err := memstore.New(memstore.Config{})
			if err != nil {
				b.Fatal(err)
			}
			local, err := memstore.New(memstore.Config{})
			if err != nil {
				b.Fatal(err)
			}
			far := &wire{Store: store}
			far.cut(bc.fault)
			l, err := mete.New(far, load(b, strings.Replace(rule, "local", bc.then, 1)), mete.Config{Local: local})
			if err != nil {
				b.Fatal(err)
			}
			req := mete.Request{Attributes: mete.Attrs{"header:x-user": "alice"}, Cost: 1}
			b.ReportAllocs()
			for b.Loop() {
				l.Take(b.Context(), req)
			}
		})
	}
}

// BenchmarkTake_DenyFor takes with and without the memory of denials. The store is in memory, so the difference
// is visible. The memory holds a thousand other buckets.
func BenchmarkTake_DenyFor(b *testing.B) {
	m := load(b, `{"name": "user", "limit_keys": ["header:x-user"], "algorithm_config": {"rps": 1000, "burst": 1000000000}}`)
	for name, cost := range map[string]bucket.Tokens{"allowed": bucket.Token, "denied": bucket.MaxTokens} {
		for _, denyFor := range []time.Duration{0, time.Hour} {
			b.Run(fmt.Sprintf("%s/%v", name, denyFor), func(b *testing.B) {
				store, err := memstore.New(memstore.Config{})
				if err != nil {
					b.Fatal(err)
				}
				l, err := mete.New(store, m, mete.Config{DenyFor: denyFor})
				if err != nil {
					b.Fatal(err)
				}
				for i := range 1000 {
					l.Take(b.Context(), mete.Request{Attributes: mete.Attrs{"header:x-user": fmt.Sprint(i)}, Cost: mete.TokensOf(bucket.MaxTokens)})
				}
				req := mete.Request{Attributes: mete.Attrs{"header:x-user": "alice"}, Cost: mete.TokensOf(cost)}
				b.ReportAllocs()
				for b.Loop() {
					l.Take(b.Context(), req)
				}
			})
		}
	}
}
