// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"io"
	"os"
	"strconv"

	replaying "github.com/metehq/mete/cmd/internal/replay"
)

// Screens that are said to be narrower, or wider, are not believed.
const minColumns, maxColumns = 40, 1000

// screenOf is what is known of what out shows. COLUMNS goes before what a terminal
// says; NO_COLOR, and TERM=dumb, keep colours from it.
func screenOf(out io.Writer) (s replaying.Screen) {
	if n, err := strconv.Atoi(os.Getenv("COLUMNS")); err == nil && minColumns <= n && n <= maxColumns {
		s.Columns = n
	}
	if !isTerminal(out) {
		return s
	}
	s.Fit, s.Colour = true, bool(painterOf(out))
	if f, ok := out.(*os.File); ok && s.Columns == 0 {
		width, _ := sizeOf(f)
		s.Columns = min(max(width, minColumns), maxColumns)
	}
	return s
}
