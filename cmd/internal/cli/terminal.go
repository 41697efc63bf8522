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

// A painter colors text for a terminal. One that is false leaves text as it is.
type painter bool

// painterOf returns the painter for an output. NO_COLOR (https://no-color.org) and TERM=dumb
// keep colors from a terminal.
func painterOf(w io.Writer) painter {
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

// verdict colors text by whether it is good.
func (p painter) verdict(s string, good bool) string {
	if good {
		return p.green(s)
	}
	return p.red(s)
}

// places colors the place at the front of each line: policy.yaml:7:11.
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
	s.Fit, s.Color = true, bool(painterOf(out))
	if f, ok := out.(*os.File); ok && s.Columns == 0 {
		if width, _, err := term.GetSize(int(f.Fd())); err == nil {
			s.Columns = min(max(width, minColumns), maxColumns)
		}
	}
	return s
}

// isTerminal reports whether a stream is a terminal.
func isTerminal(w any) bool {
	f, ok := w.(interface{ Fd() uintptr })
	return ok && term.IsTerminal(int(f.Fd()))
}
