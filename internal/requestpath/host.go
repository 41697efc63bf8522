// SPDX-License-Identifier: Apache-2.0

package requestpath

import (
	"net/netip"
	"strings"
)

// Host returns the normalized name in a Host header, "example.com" for "Example.COM.:80", and whether it is
// valid.
func Host(sent string) (name string, ok bool) {
	if strings.HasPrefix(sent, "[") {
		address, port, ok := strings.Cut(sent[1:], "]")
		if !ok || port != "" && port[0] != ':' {
			return "", false
		}
		return ipv6(address)
	}
	name, _, _ = strings.Cut(sent, ":")
	name = strings.TrimSuffix(name, ".")
	if !isName(name) {
		return "", false
	}
	return lower(name), true
}

func ipv6(text string) (string, bool) {
	addr, err := netip.ParseAddr(text)
	if err != nil || !addr.Is6() || addr.Zone() != "" {
		return "", false
	}
	return addr.String(), true
}

func isName(name string) bool {
	label := false // a label has begun
	for i := range len(name) {
		switch c := name[i]; {
		case c == '.':
			if !label {
				return false
			}
			label = false
		case c <= ' ' || c == 0x7f || strings.IndexByte(`/\?#@[]:`, c) >= 0:
			return false
		default:
			label = true
		}
	}
	return label
}

// lower returns s with ASCII letters in lower case. Other letters are kept: a Kelvin sign is not a k.
func lower(s string) string {
	for i := range len(s) {
		if 'A' <= s[i] && s[i] <= 'Z' {
			b := []byte(s)
			for ; i < len(b); i++ {
				if 'A' <= b[i] && b[i] <= 'Z' {
					b[i] += 'a' - 'A'
				}
			}
			return string(b)
		}
	}
	return s
}
