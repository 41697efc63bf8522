// SPDX-License-Identifier: Apache-2.0

package rules

// FileFields are the fields that Import does not count as a part of a policy.
var FileFields = fileFields

// RefusalNames returns the constraints with a known meaning.
func RefusalNames() (names []string) {
	for name := range refusals {
		names = append(names, name)
	}
	return names
}
