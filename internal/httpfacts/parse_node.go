// SPDX-License-Identifier: Apache-2.0

package httpfacts

import (
	"net/netip"
	"strings"

	"github.com/metehq/mete/internal/clientaddr"
)

const maxNodeBytes = 128

// parseNode parses an address as headers and connections write it: with or without a port, IPv6 with or without
// brackets. It returns the address, which is invalid on an error, and its part of s.
func parseNode(s string) (addr netip.Addr, text string) {
	if len(s) > maxNodeBytes {
		return netip.Addr{}, ""
	}
	text, port := s, ""
	if strings.HasPrefix(s, "[") {
		var closed bool
		if text, port, closed = strings.Cut(s[1:], "]"); !closed || strings.IndexByte(text, ':') < 0 {
			return netip.Addr{}, ""
		}
	} else if i := strings.IndexByte(s, ':'); i >= 0 && i == strings.LastIndexByte(s, ':') {
		text, port = s[:i], s[i:] // a single colon separates an IPv4 address and a port
	}
	if port != "" && !isPort(port) {
		return netip.Addr{}, ""
	}
	text, _, _ = strings.Cut(text, "%")
	addr, err := netip.ParseAddr(text)
	if err != nil {
		return netip.Addr{}, ""
	}
	return addr.Unmap(), text
}

// isPort reports whether s is a colon and a port, which may be obfuscated (RFC 7239, section 6).
func isPort(s string) bool {
	digits, ok := strings.CutPrefix(s, ":")
	if !ok || digits == "" || digits[0] == '_' {
		return ok && len(digits) > 1
	}
	return len(digits) <= 5 && strings.Trim(digits, "0123456789") == ""
}

// canonical returns addr as text. If text is in canonical form it returns text, to avoid an allocation.
func canonical(addr netip.Addr, text string) string {
	if !addr.IsValid() {
		return ""
	}
	addr = clientaddr.Canonical(addr)
	var buf [maxNodeBytes]byte
	if string(addr.AppendTo(buf[:0])) == text {
		return text
	}
	return addr.String()
}
