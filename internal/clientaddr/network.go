// SPDX-License-Identifier: Apache-2.0

package clientaddr

import "net/netip"

// Prefix lengths of the networks that replace client addresses in logs and for readers without permission to see
// clients. A /64 would be a single home.
const (
	networkBits4 = 24
	networkBits6 = 48
)

// Network returns the network that replaces a. It is invalid if a is invalid.
func Network(a netip.Addr) netip.Prefix {
	bits := networkBits6
	if a.Is4() {
		bits = networkBits4
	}
	p, _ := a.WithZone("").Prefix(bits)
	return p
}
