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
	reverse     = "\x1b[7m"
	normal      = "\x1b[m"
)

// A terminal is drawn on as a whole. What was there before is there again in the end.
type terminal struct {
	out  io.Writer
	in   io.Reader // nil: nothing is typed
	size func() (width, height int)

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
// drawn. The line that a heading is stands in reverse.
func (t *terminal) draw(lines []string, heading int) error {
	var b strings.Builder
	b.WriteString(toTheTop)
	for i, line := range lines {
		if i > 0 {
			b.WriteString("\r\n") // it is raw
		}
		if i == heading {
			line = reverse + line + normal
		}
		b.WriteString(line + clearLine)
	}
	b.WriteString(clearBelow)
	if _, err := io.WriteString(t.out, b.String()); err != nil {
		return fmt.Errorf("terminal: %w", err)
	}
	return nil
}

// Keys that are typed.
const (
	ctrlC = 3
	ctrlD = 4
)

// typed sends what is typed, and closes keys in the end. It ends with the process: what
// is read from a terminal cannot be interrupted.
func (t *terminal) typed() <-chan byte {
	if t.in == nil {
		return nil
	}
	keys := make(chan byte)
	go func() {
		defer close(keys)
		var b [1]byte
		for {
			if n, err := t.in.Read(b[:]); n == 0 || err != nil {
				return
			}
			keys <- b[0]
		}
	}()
	return keys
}
