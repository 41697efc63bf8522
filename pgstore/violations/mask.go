// SPDX-License-Identifier: Apache-2.0

package violations

import (
	"strings"

	"github.com/metehq/mete/internal/clientaddr"
)

// Masked is v for people who may not see whose row it is: as it had been stored without
// [Config.Raw]. Keys and users are hashes then, the same for the same, and addresses
// networks. Where rows are hidden already, nothing changes.
//
// The hashes need the Key of the reader's settings. They cannot be looked for where the
// table has what they are of.
func (r *Reader) Masked(v Violation) Violation {
	if v.Key != "" && v.Key != Others && !isHash(v.Key) {
		v.Key = hash(r.config.Key, aKey, v.Key)
	}
	if v.User != "" && !isHash(v.User) {
		v.User = hash(r.config.Key, aUser, v.User)
	}
	if v.Network.IsValid() {
		if n := clientaddr.Network(v.Network.Addr()); n.Bits() < v.Network.Bits() {
			v.Network = n
		}
	}
	return v
}

// isHash reports whether s is a hash as the table has them, or looks like one.
func isHash(s string) bool {
	const base64 = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	return len(s) == hashLength && s[0] == '~' && strings.Trim(s[1:], base64) == ""
}
