// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"slices"
	"strconv"
	"strings"

	"github.com/metehq/mete/policy"
)

// order are the fields that lead to rules, overrides and tests, in the order of their
// warnings. Inside of these the order of the findings counts.
var order = map[string]int{
	"policies": 0, "spec": 0, "rules": 0, "fallback_limit": 1, "overrides": 2, "kill_switches": 3, "global_shadow": 4, "break_glass": 5, "tests": 6,
}

// sortByPlace sorts warnings by the rules, overrides and tests that they are about.
func sortByPlace(warnings []policy.Warning) {
	slices.SortStableFunc(warnings, func(a, b policy.Warning) int { return slices.Compare(place(a.Path), place(b.Path)) })
}

// place is the part of a path that counts for the order: the numbers of the fields in
// order and of the entries.
func place(path string) (numbers []int) {
	for name := range strings.SplitSeq(strings.TrimPrefix(path, "/"), "/") {
		n, known := order[name]
		if entry, err := strconv.Atoi(name); err == nil {
			n, known = entry, true
		}
		if !known {
			break
		}
		numbers = append(numbers, n)
	}
	return numbers
}
