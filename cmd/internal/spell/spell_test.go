// SPDX-License-Identifier: Apache-2.0

package spell_test

import (
	"testing"

	"github.com/metehq/mete/cmd/internal/spell"
)

func TestNearest(t *testing.T) {
	known := []string{"serve", "take", "peek", "listen", "admin_listen"}
	tests := []struct{ word, want string }{
		{"serve", "serve"},
		{"srever", "serve"},
		{"tkae", "take"},
		{"adminlisten", "admin_listen"},
		{"admin-listen", "admin_listen"},
		{"lisetn", "listen"},
		{"", ""},
		{"x", ""},
		{"frobnicate", ""},
	}
	for _, tt := range tests {
		if got := spell.Nearest(tt.word, known); got != tt.want {
			t.Errorf("Nearest(%q) = %q, want %q", tt.word, got, tt.want)
		}
	}
}
