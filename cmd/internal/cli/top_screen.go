// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/metehq/mete/api"
	"github.com/metehq/mete/cmd/internal/display"
	"github.com/metehq/mete/httpapi"
)

// A topFrame is what "mete top" shows at one moment.
type topFrame struct {
	server, rule string
	kind         string // that is asked for, which may not be there yet
	trouble      string // why top is old; empty: it is not
	paused       bool
	top          *api.Top
	traffic      *traffic

	selected int         // the place of the key that is chosen; -1 for none
	open     *api.TopKey // of which the details are shown; nil for none
}

// From how many lines on there are empty ones and help, and what goes on now.
const (
	roomyHeight = 10
	ratesHeight = 16
	tallHeight  = 32 // beside the details of a key
)

// marker stands before the key that is chosen.
const marker = "› "

// lines lays a frame out in at most so many lines of at most so many columns.
func (f *topFrame) lines(width, height int) []line {
	roomy := height >= roomyHeight
	lines := []line{f.title()}
	if f.trouble != "" {
		lines = append(lines, line{{"! " + f.trouble, []look{bold, yellow}}})
	}
	if height >= tallHeight || height >= ratesHeight && f.open == nil {
		lines = f.addRates(lines, width)
	}
	if f.open != nil && roomy {
		lines = append(append(lines, nil), f.details(width)...)
		lines = lines[:min(len(lines), height-1)]
	} else {
		lines = f.list(lines, width, height)
	}
	if roomy {
		for len(lines) < height-1 {
			lines = append(lines, nil)
		}
		lines = append(lines, f.help(width))
	}
	lines = lines[:min(len(lines), height)]
	for i := range lines {
		lines[i] = lines[i].fit(width)
	}
	return lines
}

// list adds the table of keys, and what stands around it.
func (f *topFrame) list(lines []line, width, height int) []line {
	lines = append(lines, plainLine(topTotal(f.top)))
	foot := 1 // what is not shown
	if height >= roomyHeight {
		lines = append(lines, nil)
		foot = 3
	}
	shown := 0 // of the keys, those that are on the screen or above
	if room := height - len(lines) - foot - 1; len(f.top.Keys) > 0 && room > 0 {
		rows := min(room, len(f.top.Keys))
		from := min(max(f.selected-rows+1, 0), len(f.top.Keys)-rows)
		shown = from + rows
		for i, text := range topTable(f.top, from, rows, width-len(marker)+2) { // of three bytes
			lines = append(lines, f.row(text, i-1 == f.selected-from && f.selected >= 0, i == 0, width))
		}
	}
	if height >= roomyHeight {
		lines = append(lines, nil)
	}
	return append(lines, line{{topRest(f.top, shown, httpapi.MaxTop), []look{dim}}})
}

// row is one line of the table. Its bar has the colour of what is counted.
func (f *topFrame) row(text string, selected, heading bool, width int) line {
	switch {
	case heading:
		return line{{"  " + text, []look{flipped}}}.fit(width).pad(width, flipped)
	case selected:
		return line{{marker + text, []look{flipped, bold}}}.fit(width).pad(width, flipped)
	}
	begin := strings.IndexFunc(text, isBlock)
	if begin < 0 {
		return line{{text: "  " + text}}
	}
	end := strings.LastIndexFunc(text[:begin+strings.IndexByte(text[begin:], ' ')+1], isBlock) + len("█")
	return line{{text: "  " + text[:begin]}, {text[begin:end], []look{kindLooks[f.top.Kind]}}, {text: text[end:]}}
}

func (f *topFrame) title() line {
	var l line
	l.add("mete top", bold)
	if f.paused {
		l.add(", ")
		l.add("paused", bold, yellow)
	}
	l.add(": ")
	l.add(f.top.Kind, bold, kindLooks[f.top.Kind])
	l.add(" keys of ")
	if f.rule != "" {
		l.add("rule ")
		l.add(f.rule, bold)
	} else {
		l.add("all rules")
	}
	server := f.server
	if u, err := url.Parse(server); err == nil {
		server = u.Redacted()
	}
	l.add(", "+server+", ", dim)
	l.add(f.top.At.UTC().Format("15:04:05 UTC"))
	return l
}

// rateKinds are what goes on, in the order in which it is shown.
var rateKinds = []struct {
	name string
	kind int
	look look
}{{"allowed", trafficAllowed, green}, {"shadow", trafficShadow, violet}, {"denied", trafficDenied, red}, {"degraded", trafficDegraded, yellow}}

// addRates adds what goes on now, where the server tells it.
func (f *topFrame) addRates(lines []line, width int) []line {
	if !f.traffic.known() {
		return lines
	}
	return append(append(append(lines, nil), f.rates(width)...), nil)
}

// rates show what goes on, two kinds on a line: how much in a second, and how that was
// lately.
func (f *topFrame) rates(width int) []line {
	half := min(width/2, 60)
	var lines []line
	for i, r := range rateKinds {
		var cell line
		cell.add(fmt.Sprintf("  %-9s", r.name))
		n := f.traffic.now(r.kind)
		number := fmt.Sprintf("%8s", rateText(n))
		if n == 0 {
			cell.add(number+"/s ", dim)
		} else {
			cell.add(number, bold)
			cell.add("/s ")
		}
		cell.add(sparkline(f.traffic.rates[r.kind], half-24), r.look)
		if i%2 == 0 {
			lines = append(lines, cell.fit(half).pad(half))
		} else {
			lines[i/2] = append(lines[i/2], cell...)
		}
	}
	return lines
}

// rateText is a rate with three digits where it has a fraction.
func rateText(n float64) string {
	if n == 0 || n >= 100 {
		return strconv.FormatFloat(n, 'f', 0, 64)
	}
	return strconv.FormatFloat(n, 'f', 1, 64)
}

// help says what can be typed, as much of it as fits: how to leave before all else.
func (f *topFrame) help(width int) line {
	keys := [][2]string{{"q", "quit"}, {"d", "denied"}, {"s", "shadow"}, {"n", "near"}, {"r", "next rule"}, {"p", "pause"}, {"↑↓", "choose"}, {"⏎", "details"}}
	if f.open != nil {
		keys = [][2]string{{"q", "quit"}, {"esc", "back"}, {"↑↓", "another key"}, {"p", "pause"}}
	}
	if f.paused {
		keys[slices.Index(keys, [2]string{"p", "pause"})][1] = "go on"
	}
	var l line
	for i, k := range keys {
		var next line
		if i > 0 {
			next.add("  ")
		}
		next.add(k[0], bold)
		looks := []look{dim}
		if k[1] == f.kind {
			looks = []look{flipped}
		}
		next.add(" ")
		next.add(k[1], looks...)
		if display.Width(l.String()+next.String()) > width {
			break
		}
		l = append(l, next...)
	}
	return l
}
