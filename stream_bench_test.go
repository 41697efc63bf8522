// SPDX-License-Identifier: Apache-2.0

package mete_test

import (
	"testing"

	"github.com/metehq/mete"
	"github.com/metehq/mete/memstore"
	"github.com/metehq/mete/policy"
)

// BenchmarkStream compares a request to a language model, which is reserved and settled, with a plain take.
func BenchmarkStream(b *testing.B) {
	m, err := policy.Load([]byte(`{"rules": [{"name": "chat", "limit_keys": ["header:x-key"], "rate": "1000000000/1s", "burst": 100000000000, "cost_source": "ai:tokens"}]}`), policy.Options{})
	if err != nil {
		b.Fatal(err)
	}
	st, err := memstore.New(memstore.Config{})
	if err != nil {
		b.Fatal(err)
	}
	l, err := mete.New(st, m, mete.Config{})
	if err != nil {
		b.Fatal(err)
	}
	req := mete.Request{Attributes: mete.Attrs{"ai:prompt_tokens": "100", "ai:max_tokens": "200", "header:x-key": "a"}}
	b.Run("take", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if d, err := l.Take(b.Context(), req); err != nil || !d.Allowed {
				b.Fatal(d, err)
			}
		}
	})
	b.Run("reserve-and-finish", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			r, err := l.Reserve(b.Context(), req)
			if err != nil || !r.Allowed {
				b.Fatal(r, err)
			}
			if err := r.Finish(b.Context(), used(100, 150)); err != nil {
				b.Fatal(err)
			}
		}
	})
}
