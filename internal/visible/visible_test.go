// SPDX-License-Identifier: Apache-2.0

package visible_test

import (
	"testing"

	"github.com/metehq/mete/internal/visible"
)

func TestText(t *testing.T) {
	for _, tt := range []struct{ in, text, lines string }{
		{"", "", ""},
		{"plain, ü and 語", "plain, ü and 語", "plain, ü and 語"},
		{"\x1b[31m\x00\x7f", `\u001b[31m\u0000\u007f`, `\u001b[31m\u0000\u007f`},
		{"a\nb\r\t", `a\u000ab\u000d\u0009`, "a\nb" + `\u000d\u0009`},
		{"\u202ebackwards\u200b", `\u202ebackwards\u200b`, `\u202ebackwards\u200b`},
		{"\xff", "\ufffd", "\ufffd"},
	} {
		if text, lines := visible.Text(tt.in), visible.Lines(tt.in); text != tt.text || lines != tt.lines {
			t.Errorf("%q: got %q and %q, want %q and %q", tt.in, text, lines, tt.text, tt.lines)
		}
	}
}
