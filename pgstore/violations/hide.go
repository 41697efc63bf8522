// SPDX-License-Identifier: Apache-2.0

package violations

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"net/netip"
)

// What is hashed: a key and a user of one name have different hashes.
const (
	aKey  = "key"
	aUser = "user"
)

// hashBytes is how much of a hash is stored, as in bucket keys.
const hashBytes = 16

// hash is what stands for text in the table: a mark and 128 bits of a keyed hash.
func hash(key []byte, what, text string) string {
	h := hmac.New(sha256.New, key)
	h.Write([]byte("mete violation " + what + "\x00"))
	h.Write([]byte(text))
	return "~" + base64.RawURLEncoding.EncodeToString(h.Sum(nil)[:hashBytes])
}

// Networks that addresses are cut to. A /64 would be somebody's home.
const (
	networkBits4 = 24
	networkBits6 = 48
)

// network returns the network of an address, as it is stored.
func network(a netip.Addr) netip.Prefix {
	bits := networkBits6
	if a.Is4() {
		bits = networkBits4
	}
	p, _ := a.Prefix(bits)
	return p
}

// whole returns the prefix that is an address alone.
func whole(a netip.Addr) netip.Prefix { return netip.PrefixFrom(a, a.BitLen()) }

// parseAddr reads an address as the policy does: IPv4 in IPv6 is IPv4, zones do
// not count.
func parseAddr(s string) (netip.Addr, bool) {
	a, err := netip.ParseAddr(s)
	return a.Unmap().WithZone(""), err == nil
}
