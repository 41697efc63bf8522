// SPDX-License-Identifier: Apache-2.0

package top

import (
	"fmt"
	"net/url"
	"regexp"
	"strings"

	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/metehq/mete/cmd/internal/display"
	"github.com/metehq/mete/httpapi"
)

// Styles. Colors only repeat information that is also in the text. The terminal library disables them if NO_COLOR
// is set.
var (
	plain   = lipgloss.NewStyle()
	bold    = plain.Bold(true)
	dim     = plain.Faint(true)
	flipped = plain.Reverse(true)
	red     = plain.Foreground(lipgloss.Red)
	green   = plain.Foreground(lipgloss.Green)
	yellow  = plain.Foreground(lipgloss.Yellow)
	violet  = plain.Foreground(lipgloss.Magenta)

	kindStyles = map[string]lipgloss.Style{"denied": red, "shadow": violet, "near": yellow}
)

// Minimum heights for empty lines and help, for rates, and for rates next to details.
const (
	roomyHeight = 10
	ratesHeight = 16
	tallHeight  = 32
)

const marker = "› "

func (m *model) View() tea.View {
	v := tea.NewView(strings.Join(m.lines(), "\n"))
	v.AltScreen = true
	v.WindowTitle = "mete top"
	return v
}

// lines returns the screen: at most m.height lines of at most m.width columns.
func (m *model) lines() []string {
	roomy := m.height >= roomyHeight
	lines := []string{m.title()}
	if m.err != nil {
		lines = append(lines, yellow.Bold(true).Render(display.EscapeUnsafe(m.trouble())))
	}
	if len(m.rates.rates[0]) > 0 && (m.height >= tallHeight || m.height >= ratesHeight && !m.open) {
		lines = append(append(append(lines, ""), m.rateLines()...), "")
	}
	if m.open && roomy {
		lines = append(append(lines, ""), m.details()...)
	} else {
		lines = m.addList(lines, roomy)
	}
	if roomy {
		lines = lines[:min(len(lines), m.height-1)]
		for len(lines) < m.height-1 {
			lines = append(lines, "")
		}
		lines = append(lines, m.help())
	}
	lines = lines[:min(len(lines), m.height)]
	for i := range lines {
		lines[i] = ansi.Truncate(lines[i], m.width, "…")
	}
	return lines
}

func (m *model) title() string {
	server := m.options.Server
	if u, err := url.Parse(server); err == nil {
		server = u.Redacted()
	}
	s := bold.Render("mete top")
	if m.paused {
		s += ", " + yellow.Bold(true).Render("paused")
	}
	s += ": " + kindStyles[m.top.Kind].Bold(true).Render(display.EscapeUnsafe(m.top.Kind)) + " keys of "
	if m.rule == "" {
		s += "all rules"
	} else {
		s += "rule " + bold.Render(display.EscapeUnsafe(m.rule))
	}
	if m.order > 0 {
		s += " by " + orders[m.order].name
	}
	return s + dim.Render(", "+display.EscapeUnsafe(server)+", ") + m.top.At.UTC().Format("15:04:05 UTC")
}

// rateLines shows the rates of traffic with their history, two kinds per line.
func (m *model) rateLines() []string {
	half := min(m.width/2, 60)
	var cells []string
	for _, k := range rateKinds {
		n := m.rates.last(k.at)
		style, digits := bold, 1
		if n == 0 || n >= 100 {
			digits = 0
		}
		if n == 0 {
			style = dim
		}
		cells = append(cells, fmt.Sprintf("  %-9s%s/s %s", k.name, style.Render(fmt.Sprintf("%8.*f", digits, n)), k.style.Render(sparkline(m.rates.rates[k.at], half-24))))
	}
	return []string{fill(cells[0], half) + cells[1], fill(cells[2], half) + cells[3]}
}

func fill(text string, width int) string {
	text = ansi.Truncate(text, width, "…")
	return text + strings.Repeat(" ", width-ansi.StringWidth(text))
}

func (m *model) addList(lines []string, roomy bool) []string {
	lines = append(lines, totalText(&m.top))
	foot := 1
	if roomy {
		lines = append(lines, "")
		foot = 3
	}
	last := 0 // last visible key
	if room := m.height - len(lines) - foot - 1; len(m.top.Keys) > 0 && room > 0 {
		rows, at := min(room, len(m.top.Keys)), m.selectedIndex()
		from := min(max(at-rows+1, 0), len(m.top.Keys)-rows)
		last = from + rows
		for i, text := range fitTable(&m.top, from, rows, m.width-2) {
			lines = append(lines, m.row(text, i-1 == at-from && at >= 0, i == 0))
		}
	}
	if roomy {
		lines = append(lines, "")
	}
	return append(lines, dim.Render(restText(&m.top, last, httpapi.MaxTop)))
}

var bars = regexp.MustCompile("[" + string(parts) + "]+")

func (m *model) row(text string, selected, heading bool) string {
	switch {
	case heading:
		return flipped.Render(fill("  "+text, m.width))
	case selected:
		return flipped.Bold(true).Render(fill(marker+text, m.width))
	}
	return "  " + bars.ReplaceAllStringFunc(text, func(bar string) string { return kindStyles[m.top.Kind].Render(bar) })
}

// help lists as many key bindings as fit, starting with quit.
func (m *model) help() string {
	pause := "pause"
	if m.paused {
		pause = "resume"
	}
	keys := [][2]string{{"q", "quit"}, {"d", "denied"}, {"s", "shadow"}, {"n", "near"}, {"r", "next rule"}, {"↑↓ ⏎", "details"}, {"o", "order"}, {"p", pause}}
	if m.open {
		keys = [][2]string{{"q", "quit"}, {"esc", "back"}, {"↑↓", "choose a key"}, {"p", pause}}
	}
	s := ""
	for _, k := range keys {
		style := dim
		if k[1] == m.question.kind {
			style = flipped
		}
		next := bold.Render(k[0]) + " " + style.Render(k[1])
		if s != "" {
			next = "  " + next
		}
		if lipgloss.Width(s+next) > m.width {
			break
		}
		s += next
	}
	return s
}
