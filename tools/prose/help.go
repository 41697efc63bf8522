// SPDX-License-Identifier: Apache-2.0

package main

import (
	"regexp"
	"strings"
)

// A row of a table in a help text: "  command    description" or, of flags, "      --flag VALUE    description".
var helpRow = regexp.MustCompile(`^(?:  |      )\S(?:\S| \S)*(?: {2,}(\S.*))?$`)

// helpText returns the fenced blocks of a document as Markdown prose. Each line keeps its number. Table rows become
// list items; commands and settings become empty lines.
func helpText(document string) string {
	lines := strings.Split(document, "\n")
	fenced, inList := "", false
	for i, line := range lines {
		lines[i] = ""
		if language, isFence := strings.CutPrefix(line, "```"); isFence {
			fenced, inList = language, false
			continue
		}
		switch fenced {
		case "text":
			row := helpRow.FindStringSubmatch(line)
			isRow := row != nil && (row[1] != "" || strings.HasPrefix(line, "      --"))
			switch {
			case isRow:
				lines[i], inList = "- "+row[1], true
			case line == "" || strings.HasPrefix(line, "Usage: "):
				inList = false
			case strings.HasPrefix(line, "      "):
				if inList {
					lines[i] = "  " + strings.TrimSpace(line)
				}
			case !strings.HasPrefix(line, "  "):
				lines[i] = line
			}
		case "yaml":
			if comment, isComment := strings.CutPrefix(strings.TrimSpace(line), "#"); isComment {
				lines[i] = strings.TrimSpace(comment)
			}
		}
	}
	return strings.Join(lines, "\n")
}
