// SPDX-License-Identifier: Apache-2.0

package excerpt_test

import (
	"strings"
	"testing"

	"github.com/metehq/mete/internal/excerpt"
)

func TestOf(t *testing.T) {
	long := strings.Repeat("x", 300) + "HERE" + strings.Repeat("y", 300)
	for _, tt := range []struct {
		text         string
		line, column int
		want         string
	}{
		{"a: 1\nbü: ä\nc: 3", 2, 5, "  1 | a: 1\n> 2 | bü: ä\n    |     ^\n"},
		{"a: 1", 1, 1, "> 1 | a: 1\n    | ^\n"},
		{"\na: 1\r\n", 2, 9, "> 2 | a: 1\n    |     ^\n"},
		{"a\n\tb: \x1b[31m", 2, 5, "  1 | a\n> 2 |  b: \ufffd[31m\n    |     ^\n"},
		{strings.Repeat("a\n", 9) + "b", 10, 1, "   9 | a\n> 10 | b\n     | ^\n"},
		{"a", 2, 1, ""}, {"a", 0, 0, ""}, {"", 1, 1, "> 1 | \n    | ^\n"},
	} {
		if got := excerpt.Of(tt.text, tt.line, tt.column); got != tt.want {
			t.Errorf("Of(%q, %d, %d):\n%swant\n%s", tt.text, tt.line, tt.column, got, tt.want)
		}
	}
	shown := strings.Split(excerpt.Of(long, 1, 301), "\n")
	if at := len([]rune(shown[1])) - 1; len([]rune(shown[0])) > 120 || string([]rune(shown[0])[at:at+4]) != "HERE" {
		t.Errorf("a long line:\n%s", strings.Join(shown, "\n"))
	}
}
