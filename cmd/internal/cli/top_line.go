// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"os"
	"strings"

	"github.com/metehq/mete/cmd/internal/display"
)

// A look is how text stands out, as terminals are told.
type look string

// Looks. Colour says nothing that words do not say, too.
const (
	bold    look = "1"
	dim     look = "2"
	flipped look = "7"
	red     look = "31"
	green   look = "32"
	yellow  look = "33"
	violet  look = "35"
)

// kindLooks are the colours of what is listed.
var kindLooks = map[string]look{"denied": red, "shadow": violet, "near": yellow}

// A span is some text of a line.
type span struct {
	text  string
	looks []look
}

// A line is one of the screen.
type line []span

// add adds text.
func (l *line) add(text string, looks ...look) { *l = append(*l, span{text, looks}) }

// plainLine is text that does not stand out.
func plainLine(text string) line { return line{{text: text}} }

// String is the line without its looks.
func (l line) String() string {
	var b strings.Builder
	for _, s := range l {
		b.WriteString(s.text)
	}
	return b.String()
}

// fit returns the line with nothing that would speak to the terminal, cut to so many
// columns.
func (l line) fit(width int) line {
	var out line
	for _, s := range l {
		s.text = display.Inert(s.text)
		long := display.Width(s.text) > width
		if s.text = display.Cut(s.text, width); s.text != "" {
			out = append(out, s)
		}
		if width -= display.Width(s.text); long {
			break
		}
	}
	return out
}

// pad returns the line with blanks up to so many columns.
func (l line) pad(width int, looks ...look) line {
	if n := width - display.Width(l.String()); n > 0 {
		l = append(l[:len(l):len(l)], span{strings.Repeat(" ", n), looks})
	}
	return l
}

// told is the line as the terminal is told it.
func (l line) told(colors bool) string {
	var b strings.Builder
	for _, s := range l {
		var codes []string
		for _, k := range s.looks {
			if colors || k == bold || k == dim || k == flipped {
				codes = append(codes, string(k))
			}
		}
		if len(codes) == 0 {
			b.WriteString(s.text)
			continue
		}
		b.WriteString("\x1b[" + strings.Join(codes, ";") + "m" + s.text + normal)
	}
	return b.String()
}

// wantsColors reports whether people want colours (https://no-color.org).
func wantsColors() bool { return os.Getenv("NO_COLOR") == "" }
