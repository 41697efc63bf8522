// SPDX-License-Identifier: Apache-2.0

package workload

import "strings"

// Teams returns the team key of the user of each call. Users that differ only in their last two digits share
// a team. Team keys sort before user keys.
func (k Keys) Teams() Keys {
	all := []byte(k)
	for i := 0; i < len(all); i += KeyLen {
		copy(all[i:], "team:")
		copy(all[i+KeyLen-2:], "00")
	}
	return Keys(all)
}

// Everyone returns the one key that all users share, for each call. It sorts before team keys.
func (k Keys) Everyone() Keys {
	return Keys(strings.Repeat("everyone:0000000", k.Len()))
}
