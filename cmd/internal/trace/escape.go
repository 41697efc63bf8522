// SPDX-License-Identifier: Apache-2.0

package trace

import "strings"

// unescape decodes the escapes of access logs. nginx writes \xNN for quotes, backslashes, control characters and
// non-ASCII bytes. Apache also writes \", \\ and the escapes of C. A backslash before any other character is
// literal.
func unescape(s string) string {
	i := strings.IndexByte(s, '\\')
	if i < 0 {
		return s
	}
	var b strings.Builder
	b.Grow(len(s))
	for ; i >= 0; i = strings.IndexByte(s, '\\') {
		b.WriteString(s[:i])
		s = s[i:]
		c, n := decodeEscape(s)
		b.WriteByte(c)
		s = s[n:]
	}
	b.WriteString(s)
	return b.String()
}

// decodeEscape returns the byte for the escape at the start of s, and the length of the escape.
func decodeEscape(s string) (c byte, n int) {
	if len(s) >= 4 && s[1] == 'x' {
		high, low := hexValue(s[2]), hexValue(s[3])
		if high >= 0 && low >= 0 {
			return byte(high<<4 | low), 4
		}
	}
	if len(s) >= 2 {
		if i := strings.IndexByte(`"\bnrtv`, s[1]); i >= 0 {
			return "\"\\\b\n\r\t\v"[i], 2
		}
	}
	return '\\', 1
}

func hexValue(c byte) int {
	switch {
	case c >= '0' && c <= '9':
		return int(c - '0')
	case c|0x20 >= 'a' && c|0x20 <= 'f':
		return int(c|0x20-'a') + 10
	}
	return -1
}
