// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"
)

// What is said to a terminal.
const (
	otherScreen = "\x1b[?1049h\x1b[?25l" // and no cursor
	firstScreen = "\x1b[?25h\x1b[?1049l"
	toTheTop    = "\x1b[H"
	clearLine   = "\x1b[K"
	clearBelow  = "\x1b[J"
	normal      = "\x1b[m"
)

// A terminal is drawn on as a whole. What was there before is there again in the end.
type terminal struct {
	out  io.Writer
	in   io.Reader // nil: nothing is typed
	size func() (width, height int)

	colors bool // are wanted

	raw    *os.File    // what is read as it is typed; nil for none
	before *term.State // of raw
}

// sizeOf is the size of a terminal, that of a small one where it does not say.
func sizeOf(f *os.File) (width, height int) {
	width, height, err := term.GetSize(int(f.Fd()))
	if err != nil || width <= 0 || height <= 0 {
		return 80, 24
	}
	return width, height
}

// begin takes the terminal over.
func (t *terminal) begin() (err error) {
	if t.raw != nil {
		if t.before, err = term.MakeRaw(int(t.raw.Fd())); err != nil {
			return err
		}
	}
	_, err = io.WriteString(t.out, otherScreen)
	return err
}

// end gives it back.
func (t *terminal) end() {
	_, _ = io.WriteString(t.out, firstScreen) // it may be gone
	if t.before != nil {
		_ = term.Restore(int(t.raw.Fd()), t.before)
	}
}

// draw shows lines, each of which fits. It is one write, so that none is seen half
// drawn, and nothing is cleared that is drawn again.
func (t *terminal) draw(lines []line) error {
	var b strings.Builder
	b.WriteString(toTheTop)
	for i, l := range lines {
		if i > 0 {
			b.WriteString("\r\n") // it is raw
		}
		b.WriteString(l.told(t.colors) + clearLine)
	}
	b.WriteString(clearBelow)
	if _, err := io.WriteString(t.out, b.String()); err != nil {
		return fmt.Errorf("terminal: %w", err)
	}
	return nil
}
