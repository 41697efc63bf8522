// SPDX-License-Identifier: Apache-2.0

package violations

import "unicode/utf8"

// Column widths in characters, which are single bytes here.
const (
	maxKey      = 256
	maxUser     = 255
	maxEndpoint = 255
	maxRule     = 64
	maxLimit    = 128
	maxReason   = 64
	maxNode     = 64
)

const ellipsis = "..."

// sanitize returns a copy of s that fits a column of this width in any database encoding. It writes bytes that
// are not printable ASCII as %XX, and truncates only between characters.
func sanitize(s string, width int) string {
	const hex = "0123456789ABCDEF"
	out := make([]byte, 0, min(len(s), width))
	fits := 0 // length of out before the ellipsis
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
