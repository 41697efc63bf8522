// SPDX-License-Identifier: Apache-2.0

package rules

// FileFields are the fields that Import does not take for a part of a policy.
var FileFields = fileFields

// RefusalNames returns the constraints that refused knows.
func RefusalNames() (names []string) {
	for name := range refusals {
		names = append(names, name)
	}
	return names
}
