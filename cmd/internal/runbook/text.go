// SPDX-License-Identifier: Apache-2.0

package runbook

import (
	"regexp"
	"strings"

	"github.com/metehq/mete/cmd/internal/display"
)

const width = 80

var (
	link = regexp.MustCompile(`\[([^\]]+)\]\(([^)]+)\)`)
	bold = strings.NewReplacer("**", "", "*Mete", "Mete", ".**", ".", ".*", ".")
	item = regexp.MustCompile(`^ *(- |\d+\. )`)
)

// terminalText formats Markdown for a terminal. It prints a table row as its first cell, followed by one line per
// cell with the column's title.
func terminalText(markdown string) string {
	var b strings.Builder
	var paragraph, titles []string
	write := func(indent, hang, text string) {
		b.WriteString(strings.Join(display.Wrap(text, width, indent, hang), "\n") + "\n")
	}
	flush := func() {
		if text := strings.Join(paragraph, " "); text != "" {
			write("", strings.Repeat(" ", len(item.FindString(text))), text)
		}
		paragraph = nil
	}
	for line := range strings.SplitSeq(unlink(markdown), "\n") {
		line = bold.Replace(strings.TrimPrefix(strings.TrimPrefix(line, "> "), "# "))
		cells, row := cut(line)
		switch {
		case row && strings.Trim(strings.Join(cells, ""), "- :") == "": // the line below the titles
		case row && titles == nil:
			flush()
			titles = cells
		case row:
			write("", "  ", cells[0])
			for i, cell := range cells[1:] {
				title := titles[min(i+1, len(titles)-1)]
				if title != "" {
					title += ": "
				}
				write("  ", "    ", title+cell)
			}
		case line == "" || strings.HasPrefix(line, "    "):
			flush()
			titles = nil
			b.WriteString(line + "\n")
		default:
			if item.MatchString(line) {
				flush()
			}
			paragraph = append(paragraph, strings.TrimSpace(line))
		}
	}
	flush()
	return strings.TrimRight(b.String(), "\n") + "\n"
}

// unlink replaces links by their texts and the page they lead to.
func unlink(markdown string) string {
	return link.ReplaceAllStringFunc(markdown, func(found string) string {
		m := link.FindStringSubmatch(found)
		if file, _, _ := strings.Cut(m[2], "#"); file != "" && m[1] != file {
			return m[1] + " (doc/" + file + ")"
		}
		return m[1]
	})
}

// cut returns the cells of a table row.
func cut(line string) (cells []string, ok bool) {
	line = strings.TrimSpace(line)
	if !strings.HasPrefix(line, "|") || !strings.HasSuffix(line, "|") || len(line) < 2 {
		return nil, false
	}
	for cell := range strings.SplitSeq(line[1:len(line)-1], "|") {
		cells = append(cells, strings.TrimSpace(cell))
	}
	return cells, true
}
