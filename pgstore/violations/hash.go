// SPDX-License-Identifier: Apache-2.0

package violations

import (
	"crypto/hmac"
	"crypto/sha256"
	"net/netip"

	"github.com/metehq/mete/policy"
)

// Kinds of hashed text: a key and a user with the same name have different hashes.
const (
	kindKey  = "key"
	kindUser = "user"
)

// hashLength is the length of a hash with its prefix.
var hashLength = len(policy.AppendKeyHash(nil, make([]byte, sha256.Size)))

// hashText returns the keyed hash of text in the format of bucket keys.
func hashText(key []byte, what, text string) string {
	h := hmac.New(sha256.New, key)
	h.Write([]byte("mete violation " + what + "\x00"))
	h.Write([]byte(text))
	return string(policy.AppendKeyHash(nil, h.Sum(nil)))
}

func hostPrefix(a netip.Addr) netip.Prefix { return netip.PrefixFrom(a, a.BitLen()) }

// parseAddr reads an address as package policy does: it maps IPv4-in-IPv6 to IPv4 and drops zones.
func parseAddr(s string) (netip.Addr, bool) {
	a, err := netip.ParseAddr(s)
	return a.Unmap().WithZone(""), err == nil
}
