// SPDX-License-Identifier: Apache-2.0

package workload

import "strings"

// Teams returns, call by call, the key of the team that the user of k belongs
// to: users whose numbers differ in the last two digits only share a team. A
// team's key sorts before that of a user.
func (k Keys) Teams() Keys {
	all := []byte(k)
	for i := 0; i < len(all); i += KeyLen {
		copy(all[i:], "team:")
		copy(all[i+KeyLen-2:], "00")
	}
	return Keys(all)
}

// Everyone returns, for every call, the one key that all users share. It sorts
// before those of teams.
func (k Keys) Everyone() Keys {
	return Keys(strings.Repeat("everyone:0000000", k.Len()))
}
