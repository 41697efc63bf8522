// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"net/url"

	"github.com/metehq/mete/cmd/internal/display"
	"github.com/metehq/mete/httpapi"
)

// A topFrame is what "mete top" shows at one moment.
type topFrame struct {
	server, rule string
	trouble      string // why top is old; empty: it is not
	top          *httpapi.TopKeys
}

// topKeysHelp says what can be typed.
const topKeysHelp = "q quit   d denied   s shadow   n near"

// roomyHeight is from how many lines on there are empty ones, and help.
const roomyHeight = 10

// topScreen lays a frame out in at most so many lines of at most so many columns. It
// says which one is the heading of the table, -1 for none.
func topScreen(f *topFrame, width, height int) (lines []string, heading int) {
	roomy := height >= roomyHeight
	lines = append(lines, f.title(), topTotal(f.top))
	if f.trouble != "" {
		lines = append(lines, "! "+f.trouble)
	}
	if roomy {
		lines = append(lines, "")
	}
	foot := 1 // what is not shown
	if roomy {
		foot = 4
	}
	heading, rows := -1, 0
	if room := height - len(lines) - foot - 1; len(f.top.Keys) > 0 && room > 0 {
		rows = min(room, len(f.top.Keys))
		heading = len(lines)
		lines = append(lines, topTable(f.top, rows, width)...)
	}
	if roomy {
		lines = append(lines, "")
	}
	lines = append(lines, topRest(f.top, rows, httpapi.MaxTop))
	if roomy {
		for len(lines) < height-1 {
			lines = append(lines, "")
		}
		lines = append(lines, topKeysHelp)
	}
	lines = lines[:min(len(lines), height)]
	if heading >= len(lines) {
		heading = -1
	}
	for i := range lines {
		lines[i] = display.Cut(display.Inert(lines[i]), width)
	}
	return lines, heading
}

func (f *topFrame) title() string {
	text := "mete top: " + f.top.Kind + " keys of "
	if f.rule != "" {
		text += "rule " + f.rule
	} else {
		text += "all rules"
	}
	server := f.server
	if u, err := url.Parse(server); err == nil {
		server = u.Redacted()
	}
	return text + ", " + server + ", " + f.top.At.UTC().Format("15:04:05 UTC")
}
