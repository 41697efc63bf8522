// SPDX-License-Identifier: Apache-2.0

// Package clientaddr normalizes client addresses, so that one client has one bucket.
package clientaddr

import "net/netip"

var (
	nat64  = netip.MustParsePrefix("64:ff9b::/96") // RFC 6052: the IPv4 address is at the end
	sixTo4 = netip.MustParsePrefix("2002::/16")    // RFC 3056: the IPv4 address follows the prefix
)

// Canonical returns a without its zone, and as IPv4 if it represents an IPv4 address: mapped (::ffff:192.0.2.1),
// NAT64 (64:ff9b::192.0.2.1) or 6to4 (2002:c000:201::1). Otherwise all clients behind NAT64 would share one /64,
// and a 6to4 client would have 65,536 of them. Embedded private addresses are not converted: NAT64 and 6to4
// cannot carry them, and rules may trust them.
func Canonical(a netip.Addr) netip.Addr {
	if a = a.Unmap(); a.Is4() {
		return a
	}
	a = a.WithZone("")
	if v4, ok := embedded(a); ok && v4.IsGlobalUnicast() && !v4.IsPrivate() {
		return v4
	}
	return a
}

func embedded(a netip.Addr) (netip.Addr, bool) {
	b := a.As16()
	switch {
	case nat64.Contains(a):
		return netip.AddrFrom4([4]byte(b[12:16])), true
	case sixTo4.Contains(a):
		return netip.AddrFrom4([4]byte(b[2:6])), true
	}
	return netip.Addr{}, false
}

// Unreachable reports whether no client can have an address in p, because Canonical converts all of them to IPv4.
func Unreachable(p netip.Prefix) bool {
	return p.Bits() >= nat64.Bits() && nat64.Contains(p.Addr()) || p.Bits() >= sixTo4.Bits() && sixTo4.Contains(p.Addr())
}
