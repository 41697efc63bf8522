// SPDX-License-Identifier: Apache-2.0

package httpfacts

import (
	"fmt"
	"net/netip"
	"strings"

	"github.com/metehq/mete/internal/clientaddr"
	"github.com/metehq/mete/internal/requestpath"
	"github.com/metehq/mete/policy"
)

// Normalize returns the value of an attribute that a caller sends as text, in the form that the HTTP adapters
// produce. A resource with two spellings would have two buckets. A problem, if not empty, tells the caller what to
// change.
func Normalize(attr policy.Attribute, value string) (normal, problem string) {
	switch attr.Source {
	case policy.SourceHeader:
		if attr.Name == "authorization" {
			return Credentials(value), ""
		}
	case policy.SourceCookie:
		return CookieText(value), ""
	case policy.SourcePath:
		path, disputed := requestpath.Parse(value)
		if disputed {
			return "", "servers interpret this path differently; reject the request, or resolve its dot segments"
		}
		return path, ""
	case policy.SourceHost:
		host, ok := requestpath.Host(value)
		if !ok {
			return "", "invalid host; write a name such as example.com, or leave it out"
		}
		return host, ""
	case policy.SourceMethod:
		if value == "" {
			return "", "the method is empty; write one such as GET, or leave it out"
		}
		return requestpath.Method(value), ""
	case policy.SourceIP:
		addr, err := netip.ParseAddr(value)
		if err != nil {
			return "", fmt.Sprintf("%q is not an address; write one such as 192.0.2.1 or 2001:db8::1, without a port, or leave it out", clip(value))
		}
		var room [len("ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff")]byte
		if usual := clientaddr.Canonical(addr).AppendTo(room[:0]); string(usual) != value { // no copy as a rule
			return string(usual), ""
		}
	}
	return value, ""
}

func clip(s string) string {
	const longest = 80
	if len(s) <= longest {
		return s
	}
	return strings.ToValidUTF8(s[:longest], "") + "…"
}
