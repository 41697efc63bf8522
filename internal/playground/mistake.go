// SPDX-License-Identifier: Apache-2.0

package playground

import (
	"fmt"
	"strings"

	"github.com/metehq/mete/api"
)

// Mistakes are all that were found. They are an error.
type Mistakes []api.Mistake

// Error lists the mistakes, one a line.
func (ms Mistakes) Error() string {
	lines := make([]string, len(ms))
	for i, m := range ms {
		lines[i] = m.String()
	}
	return "playground: " + strings.Join(lines, "\n")
}

// add notes a mistake.
func (ms *Mistakes) add(field, hint, format string, args ...any) {
	*ms = append(*ms, api.Mistake{Pointer: field, Detail: fmt.Sprintf(format, args...), Hint: hint})
}

// err is nil where nothing was found.
func (ms Mistakes) err() error {
	if len(ms) == 0 {
		return nil
	}
	return ms
}
