// SPDX-License-Identifier: Apache-2.0

package rules

// SetsApart and Refusals are what the database says as well.
var SetsApart = setsApart

func RefusalNames() (names []string) {
	for name := range refusals {
		names = append(names, name)
	}
	return names
}
