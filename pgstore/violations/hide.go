// SPDX-License-Identifier: Apache-2.0

package violations

import (
	"crypto/hmac"
	"crypto/sha256"
	"net/netip"

	"github.com/metehq/mete/policy"
)

// What is hashed: a key and a user of one name have different hashes.
const (
	aKey  = "key"
	aUser = "user"
)

// hashLength is the length of a hash with its mark.
var hashLength = len(policy.AppendKeyHash(nil, make([]byte, sha256.Size)))

// hash returns the keyed hash that replaces text in the table, as bucket keys have it.
func hash(key []byte, what, text string) string {
	h := hmac.New(sha256.New, key)
	h.Write([]byte("mete violation " + what + "\x00"))
	h.Write([]byte(text))
	return string(policy.AppendKeyHash(nil, h.Sum(nil)))
}

// whole returns the prefix that is an address alone.
func whole(a netip.Addr) netip.Prefix { return netip.PrefixFrom(a, a.BitLen()) }

// parseAddr reads an address as the policy does: IPv4 in IPv6 is IPv4, zones do
// not count.
func parseAddr(s string) (netip.Addr, bool) {
	a, err := netip.ParseAddr(s)
	return a.Unmap().WithZone(""), err == nil
}
