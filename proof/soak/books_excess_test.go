// SPDX-License-Identifier: Apache-2.0

package soak_test

import (
	"math"
	"testing"
)

// TestExcess checks that the books find an excess, and only an excess.
func TestExcess(t *testing.T) {
	const second = 1_000_000
	l := limit{rate: 10, capacity: 5}
	at := func(instants ...int64) (grants []grant) {
		for _, i := range instants {
			grants = append(grants, grant{i, i})
		}
		return grants
	}
	burst := at(0, 0, 0, 0, 0)
	for _, tt := range []struct {
		name   string
		grants []grant
		losses []span
		raises []span
		want   float64
	}{
		{"none", nil, nil, nil, -5},
		{"the whole bucket", burst, nil, nil, 0},
		{"one more at once", append(at(0), burst...), nil, nil, 1},
		{"one more as it comes back", append(at(second/10), burst...), nil, nil, 0},
		{"one more a moment early", append(at(second/10-1000), burst...), nil, nil, 0.01},
		{"an answer that took long may have been late", append([]grant{{0, second / 10}}, burst...), nil, nil, 0},
		{"an answer that took long leaves room for what follows", append([]grant{{0, second}}, burst...), nil, nil, 0},
		{"idleness is no credit", append(at(9*second, 9*second, 9*second, 9*second, 9*second, 9*second), burst...), nil, nil, 1},
		{"a loss forgives", append(at(10, 10, 10, 10, 10), burst...), []span{{5, 6}}, nil, 0},
		{"a loss forgives once", append(at(10, 10, 10, 10, 10, 10), burst...), []span{{5, 6}}, nil, 1},
		{"a loss before forgives nothing", append(at(10, 10), at(10, 10, 10, 10)...), []span{{5, 6}}, nil, 1},
		{"a raise adds its difference", append(at(10, 10), burst...), nil, []span{{5, 6}}, 0},
		{"a raise adds no more", append(at(10, 10, 10), burst...), nil, []span{{5, 6}}, 0.9999},
	} {
		b := book{limit: l, raise: 2, grants: tt.grants}
		if got, _ := b.excess(tt.losses, tt.raises); math.Abs(got-tt.want) > 1e-9 {
			t.Errorf("%s: excess %.9f, want %.9f", tt.name, got, tt.want)
		}
	}
}

func TestCheckWindows(t *testing.T) {
	b := book{limit: limit{perWindow: 2, window: 100}, grants: []grant{{100, 110}, {120, 130}, {180, 220}, {199, 199}}}
	for _, tt := range []struct {
		losses []span
		want   int
	}{{nil, 1}, {[]span{{150, 160}}, 0}, {[]span{{200, 300}}, 1}} {
		var w failures
		b.checkWindows("w", tt.losses, &w)
		if got := len(w.list()); got != tt.want {
			t.Errorf("losses %v: %d wrongs, want %d: %q", tt.losses, got, tt.want, w.list())
		}
	}
}
