// SPDX-License-Identifier: Apache-2.0

package ratelimitfields_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/ratelimitfields"
)

func decisions(t testing.TB) map[string]*mete.Decision {
	free, day := newLimit(t, "free", "20", "10/1s"), newLimit(t, "day", "1000", "1000/1d")
	return map[string]*mete.Decision{
		"one limit":  decision(status(free, 20*bucket.Token, bucket.Token)),
		"two limits": decision(status(free, 20*bucket.Token, bucket.Token), status(day, 9*bucket.Token, bucket.Token)),
		"of rules":   decision(ofRule(t, status(free, 20*bucket.Token, bucket.Token)), ofRule(t, status(day, 9*bucket.Token, bucket.Token))),
		"denied":     decision(status(free, 0, bucket.Token)),
	}
}

// ofRule sets a rule with fields and jitter.
func ofRule(t testing.TB, s mete.Status) mete.Status {
	s.Rule = ruleOf(t, "draft-11 legacy", "20%")
	return s
}

func TestHeader_Allocations(t *testing.T) {
	w := newWriter(t, ratelimitfields.Config{})
	for name, d := range decisions(t) {
		h := http.Header{}
		w.Header(h, d, "192.0.2.1", "k1")
		// One for all fields.
		if got := testing.AllocsPerRun(100, func() { w.Header(h, d, "192.0.2.1", "k1") }); got > 1 {
			t.Errorf("%s: %v allocations, want at most 1", name, got)
		}
	}
}

func BenchmarkHeader(b *testing.B) {
	w := newWriter(b, ratelimitfields.Config{})
	for name, d := range decisions(b) {
		b.Run(name, func(b *testing.B) {
			h := http.Header{}
			b.ReportAllocs()
			for b.Loop() {
				w.Header(h, d, "192.0.2.1", "k1")
			}
		})
	}
}

// discard is a ResponseWriter that keeps nothing but its header.
type discard http.Header

func (d discard) Header() http.Header         { return http.Header(d) }
func (d discard) Write(b []byte) (int, error) { return len(b), nil }
func (d discard) WriteHeader(int)             {}

func BenchmarkDeny(b *testing.B) {
	w := newWriter(b, ratelimitfields.Config{})
	r, d := httptest.NewRequest("GET", "/", nil), decisions(b)["denied"]
	b.ReportAllocs()
	for b.Loop() {
		w.Deny(discard{}, r, d, "192.0.2.1", "k1")
	}
}
