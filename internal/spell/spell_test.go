// SPDX-License-Identifier: Apache-2.0

package spell_test

import (
	"strings"
	"testing"

	"github.com/metehq/mete/internal/spell"
)

func TestNearest(t *testing.T) {
	known := []string{"serve", "take", "peek", "listen", "admin_listen", "rps"}
	tests := []struct{ word, want string }{
		{"serve", "serve"},
		{"srever", "serve"},
		{"Serve", "serve"},
		{"tkae", "take"},
		{"adminlisten", "admin_listen"},
		{"admin-listen", "admin_listen"},
		{"lisetn", "listen"},
		{"rsp", "rps"},
		{"", ""},
		{"x", ""},
		{"frobnicate", ""},
		{strings.Repeat("serve", 1<<16), ""},
	}
	for _, tt := range tests {
		if got := spell.Nearest(tt.word, known); got != tt.want {
			t.Errorf("Nearest(%.40q) = %q, want %q", tt.word, got, tt.want)
		}
	}
	if got := spell.Nearest("tale", []string{"take", "tile"}); got != "take" {
		t.Errorf("of two as near, got %q, want the first", got)
	}
}

func TestDistance(t *testing.T) {
	for _, tt := range []struct {
		a, b string
		want int
	}{
		{"", "", 0}, {"a", "", 1}, {"", "ab", 2}, {"abc", "abc", 0},
		{"abc", "abd", 1}, {"abc", "acb", 1}, {"abc", "bc", 1}, {"ab", "xyz", 3},
		{"kitten", "sitting", 3}, {"method", "mehtods", 2},
	} {
		if got, back := spell.Distance(tt.a, tt.b), spell.Distance(tt.b, tt.a); got != tt.want || back != tt.want {
			t.Errorf("Distance(%q, %q) = %d, and back %d, want %d", tt.a, tt.b, got, back, tt.want)
		}
	}
}
