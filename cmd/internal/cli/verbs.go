// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/metehq/mete/internal/spell"
)

// unknownVerb says that a command of several verbs has not that one.
func unknownVerb(verb string, known []string) string {
	if near := spell.Nearest(verb, known); near != "" {
		return fmt.Sprintf("unknown %q; did you mean %s?", verb, near)
	}
	return fmt.Sprintf("unknown %q: say one of %s", verb, strings.Join(known, ", "))
}

// strangeFlag says which of the flags that were given is none of the verb's, nothing
// where all are.
func strangeFlag(verb string, given map[string]bool, flags []string) string {
	for name := range given {
		if !slices.Contains(flags, name) {
			return fmt.Sprintf("%s is not for %s", dashed(name), verb)
		}
	}
	return ""
}
