// SPDX-License-Identifier: Apache-2.0

package lease_test

import (
	"testing"

	"github.com/metehq/mete/internal/lease"
)

func TestStats_Efficiency(t *testing.T) {
	for _, tt := range []struct {
		granted, unspent, spent int
		want                    float64
	}{{0, 0, 0, 1}, {5, 5, 0, 1}, {5, 1, 2, 0.5}} {
		var s lease.Stats
		setCount(&s.Granted, tt.granted)
		setCount(&s.Unspent, tt.unspent)
		setCount(&s.Spent, tt.spent)
		if got := s.Efficiency(); got != tt.want {
			t.Errorf("%+v: got %v, want %v", tt, got, tt.want)
		}
	}
}

func setCount[T ~int64 | ~uint64 | ~int](to *T, n int) { *to = T(n) }
