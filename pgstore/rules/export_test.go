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

// AllApart is what comparing each rule with the others comes to, and what a crowd says
// of the same. Each rule is its clauses: values by attribute.
func AllApart(clauses []map[string][]string) (each, asCrowd bool) {
	each = true
	list := make([]*translation, len(clauses))
	for i, match := range clauses {
		list[i] = &translation{match: match}
		for _, other := range list[:i] {
			each = each && apart(other, list[i])
		}
	}
	return each, allApart(list)
}
