// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"slices"
	"strconv"
	"strings"

	"github.com/metehq/mete/policy"
)

// order has the fields that lead to rules, overrides and tests, in the order of their warnings. Deeper
// findings keep their order.
var order = map[string]int{
	"policies": 0, "spec": 0, "rules": 0, "fallback_limit": 1, "overrides": 2, "kill_switches": 3, "global_shadow": 4, "break_glass": 5, "tests": 6,
}

func sortByPlace(warnings []policy.Warning) {
	slices.SortStableFunc(warnings, func(a, b policy.Warning) int { return slices.Compare(sortKey(a.Path), sortKey(b.Path)) })
}

// sortKey returns the part of a path that determines the order: the ranks of the fields in order, and the indexes
// of entries.
func sortKey(path string) (numbers []int) {
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
