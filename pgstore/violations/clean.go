// SPDX-License-Identifier: Apache-2.0

package violations

import "unicode/utf8"

// Widths of the columns, in characters, which are bytes here.
const (
	maxKey      = 256
	maxUser     = 255
	maxEndpoint = 255
	maxRule     = 64
	maxLimit    = 128
	maxReason   = 64
	maxNode     = 64
)

// ellipsis ends what was cut.
const ellipsis = "..."

// clean returns a copy of s as a column of this width takes it, whatever the
// encoding of the database: bytes that are no printable ASCII are written %XX.
// Nothing is cut in the middle of a character.
func clean(s string, width int) string {
	const hex = "0123456789ABCDEF"
	out := make([]byte, 0, min(len(s), width))
	fits := 0 // how much of out leaves room for the ellipsis
	for i := 0; i < len(s); {
		_, size := utf8.DecodeRuneInString(s[i:])
		for _, c := range []byte(s[i : i+size]) {
			if c >= ' ' && c <= '~' {
				out = append(out, c)
			} else {
				out = append(out, '%', hex[c>>4], hex[c&15])
			}
		}
		if len(out) > width {
			return string(append(out[:fits], ellipsis...))
		}
		if len(out) <= width-len(ellipsis) {
			fits = len(out)
		}
		i += size
	}
	return string(out)
}
