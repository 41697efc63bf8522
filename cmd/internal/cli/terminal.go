// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"io"
	"os"
	"strconv"
	"strings"

	"golang.org/x/term"

	replaying "github.com/metehq/mete/cmd/internal/replay"
)

// A painter colors text for a terminal. The painter false returns text unchanged.
type painter bool

// newPainter returns the painter for an output. NO_COLOR (https://no-color.org) and TERM=dumb disable colors.
func newPainter(w io.Writer) painter {
	return painter(isTerminal(w) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb")
}

func (p painter) red(s string) string    { return p.paint("\x1b[31m", s) }
func (p painter) green(s string) string  { return p.paint("\x1b[32m", s) }
func (p painter) yellow(s string) string { return p.paint("\x1b[33m", s) }

func (p painter) paint(color, s string) string {
	if !p || s == "" {
		return s
	}
	return color + s + "\x1b[m"
}

// verdict paints s green if good, and red otherwise.
func (p painter) verdict(s string, good bool) string {
	if good {
		return p.green(s)
	}
	return p.red(s)
}

// places colors the position at the front of each line, such as policy.yaml:7:11.
func (p painter) places(text, file string) string {
	if !p {
		return text
	}
	lines := strings.SplitAfter(text, "\n")
	for i, line := range lines {
		if rest, ok := strings.CutPrefix(line, file+":"); ok {
			length := len(rest) - len(strings.TrimLeft(rest, "0123456789:"))
			lines[i] = p.red(file+":"+rest[:length]) + rest[length:]
		}
	}
	return strings.Join(lines, "")
}

// newScreen keeps the width of a screen between these bounds.
const minColumns, maxColumns = 40, 1000

// newScreen returns the width of out and whether it shows colors. COLUMNS overrides the terminal's width. NO_COLOR
// and TERM=dumb disable colors.
func newScreen(out io.Writer) (s replaying.Screen) {
	if n, err := strconv.Atoi(os.Getenv("COLUMNS")); err == nil && minColumns <= n && n <= maxColumns {
		s.Columns = n
	}
	if !isTerminal(out) {
		return s
	}
	s.Fit, s.Color = true, bool(newPainter(out))
	if f, ok := out.(*os.File); ok && s.Columns == 0 {
		if width, _, err := term.GetSize(int(f.Fd())); err == nil {
			s.Columns = min(max(width, minColumns), maxColumns)
		}
	}
	return s
}

func isTerminal(w any) bool {
	f, ok := w.(interface{ Fd() uintptr })
	return ok && term.IsTerminal(int(f.Fd()))
}
