// SPDX-License-Identifier: Apache-2.0

package clientaddr

import "net/netip"

// The networks that replace the addresses of clients in logs and for readers that must not
// see clients. A /64 would be one home.
const (
	networkBits4 = 24
	networkBits6 = 48
)

// Network returns the network that replaces a. It is not valid if a is not.
func Network(a netip.Addr) netip.Prefix {
	bits := networkBits6
	if a.Is4() {
		bits = networkBits4
	}
	p, _ := a.WithZone("").Prefix(bits)
	return p
}
