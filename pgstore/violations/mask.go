// SPDX-License-Identifier: Apache-2.0

package violations

import (
	"strings"

	"github.com/metehq/mete/internal/clientaddr"
)

// Mask returns v for viewers without access to client data, as if it had been stored without [Config.Raw]. Keys and
// users are replaced by hashes, and addresses by networks. Hashed values do not change.
//
// The hashes need the Key of the reader's settings. A query for such a hash finds no rows that are stored with
// Raw.
func (r *Reader) Mask(v Violation) Violation {
	if v.Key != "" && v.Key != Others && !isHash(v.Key) {
		v.Key = hashText(r.config.Key, kindKey, v.Key)
	}
	if v.User != "" && !isHash(v.User) {
		v.User = hashText(r.config.Key, kindUser, v.User)
	}
	if v.Network.IsValid() {
		if n := clientaddr.Network(v.Network.Addr()); n.Bits() < v.Network.Bits() {
			v.Network = n
		}
	}
	return v
}

func isHash(s string) bool {
	const base64 = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	return len(s) == hashLength && s[0] == '~' && strings.Trim(s[1:], base64) == ""
}
