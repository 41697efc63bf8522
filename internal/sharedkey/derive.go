// SPDX-License-Identifier: Apache-2.0

package sharedkey

import "crypto/sha256"

// Derive derives a key for a purpose from a secret. Keys for different purposes are independent.
func Derive(purpose, secret string) [sha256.Size]byte {
	return sha256.Sum256([]byte("mete " + purpose + "\x00" + secret))
}
