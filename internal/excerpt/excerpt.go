// SPDX-License-Identifier: Apache-2.0

// Package excerpt shows the place of an error in a text file.
package excerpt

import (
	"fmt"
	"strings"

	"github.com/metehq/mete/internal/visible"
)

// maxWidth bounds the characters that are shown of a line.
const maxWidth = 100

// Of returns the line of an error with a caret below its column, and the line before it:
//
//	  1 | listen: 127.0.0.1:8080
//	> 2 | trust_jwt: perhaps
//	    |            ^
//
// Lines and columns count from 1, columns in characters. Of returns "" for a place outside of the text.
func Of(text string, line, column int) string {
	lines := strings.Split(text, "\n")
	if line < 1 || line > len(lines) || column < 1 {
		return ""
	}
	var b strings.Builder
	width := len(fmt.Sprint(line))
	if line > 1 && strings.TrimSpace(lines[line-2]) != "" {
		before, _ := window(lines[line-2], 1)
		fmt.Fprintf(&b, "  %*d | %s\n", width, line-1, before)
	}
	at, caret := window(lines[line-1], column)
	fmt.Fprintf(&b, "> %d | %s\n", line, at)
	fmt.Fprintf(&b, "  %*s | %*s\n", width, "", caret, "^")
	return b.String()
}

// window returns the part of a line around a column, and the column in that part.
func window(line string, column int) (part string, at int) {
	runes := []rune(strings.TrimRight(strings.ReplaceAll(line, "\t", " "), " \r"))
	at = min(column, len(runes)+1)
	if start := at - maxWidth/2; len(runes) > maxWidth && start > 0 {
		runes, at = append([]rune("…"), runes[start:]...), at-start+1
	}
	if len(runes) > maxWidth {
		runes = append(runes[:maxWidth:maxWidth], '…')
	}
	for i, r := range runes {
		if visible.Text(string(r)) != string(r) {
			runes[i] = '\ufffd' // one column, as the caret counts
		}
	}
	return string(runes), at
}
