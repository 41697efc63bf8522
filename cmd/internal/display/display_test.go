// SPDX-License-Identifier: Apache-2.0

package display_test

import (
	"slices"
	"testing"

	"github.com/metehq/mete/cmd/internal/display"
)

func TestWidthAndCut(t *testing.T) {
	for _, tt := range []struct {
		text    string
		width   int
		columns int
		cut     string
	}{
		{"", 0, 0, ""},
		{"abc", 3, 3, "abc"},
		{"abcd", 4, 3, "ab…"},
		{"Zoë", 3, 2, "Z…"},
		{"日本語", 6, 6, "日本語"},
		{"日本語", 6, 5, "日本…"},
		{"日本語", 6, 4, "日…"},
		{"日本語", 6, 1, "…"},
		{"e\u0301e", 2, 2, "e\u0301e"},
		{"abc", 3, 0, ""},
		{"abc", 3, -1, ""},
	} {
		if got := display.Width(tt.text); got != tt.width {
			t.Errorf("Width(%q) = %d, want %d", tt.text, got, tt.width)
		}
		got := display.Cut(tt.text, tt.columns)
		if got != tt.cut || display.Width(got) > max(tt.columns, 0) {
			t.Errorf("Cut(%q, %d) = %q, want %q", tt.text, tt.columns, got, tt.cut)
		}
	}
}

func TestInert(t *testing.T) {
	for text, want := range map[string]string{
		"ip=192.0.2.1 Zoë 日本": "ip=192.0.2.1 Zoë 日本",
		"a\x1b[2Jb":           `a\u001b[2Jb`,
		"a\r\nb\tc\x00":       `a\u000d\u000ab\u0009c\u0000`,
		"\u202eevil\u202c":    `\u202eevil\u202c`,
		"\u05d0\u0627":        `\u05d0\u0627`,
		"e\u0301":             `e\u0301`,
		"\x9b31m":             "\uFFFD31m",
		"zero\u200bwidth":     `zero\u200bwidth`,
	} {
		if got := display.EscapeUnsafe(text); got != want {
			t.Errorf("Inert(%q) = %q, want %q", text, got, want)
		}
	}
}

func TestWrap(t *testing.T) {
	for _, tt := range []struct {
		text, first, hang string
		want              []string
	}{
		{"", "", "", []string{""}},
		{"", "- ", "  ", []string{"- "}},
		{"one two", "", "", []string{"one two"}},
		{"one two three", "", "  ", []string{"one two", "  three"}},
		{" one  two\nthree\x00#four", "# ", "# ", []string{"# one", "# two", "# three", "# #four"}},
		{"a-long-word b", "", "", []string{"a-long-word", "b"}},
		{"日本 語", "é ", "", []string{"é 日本", "語"}},
	} {
		if got := display.Wrap(tt.text, 8, tt.first, tt.hang); !slices.Equal(got, tt.want) {
			t.Errorf("%q: got %q, want %q", tt.text, got, tt.want)
		}
	}
}
