// SPDX-License-Identifier: Apache-2.0

package rules

// RefusalNames returns the constraints that refused knows.
func RefusalNames() (names []string) {
	for name := range refusals {
		names = append(names, name)
	}
	return names
}
