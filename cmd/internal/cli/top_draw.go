// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"math"
	"strings"
)

// steps are blocks of growing height, and parts of growing width.
const (
	steps = "▁▂▃▄▅▆▇█"
	parts = "▏▎▍▌▋▊▉█"
)

// sparkline draws the last of the values, as many as there are columns, the highest one
// as a full block. What is above nothing is higher than what is not.
func sparkline(values []float64, columns int) string {
	if columns <= 0 {
		return ""
	}
	values = values[max(len(values)-columns, 0):]
	most := 0.0
	for _, v := range values {
		most = max(most, v)
	}
	blocks := []rune(steps)
	var b strings.Builder
	for _, v := range values {
		at := 0
		if v > 0 {
			at = 1 + int(math.Round(v/most*float64(len(blocks)-2)))
		}
		b.WriteRune(blocks[at])
	}
	return b.String()
}

// shareBar draws a part of one in so many columns, and blanks for the rest.
func shareBar(part float64, columns int) string {
	blocks := []rune(parts)
	eighths := int(math.Round(min(max(part, 0), 1) * float64(columns*len(blocks))))
	if part > 0 {
		eighths = max(eighths, 1)
	}
	full, rest := eighths/len(blocks), eighths%len(blocks)
	text := strings.Repeat("█", full)
	if rest > 0 {
		text += string(blocks[rest-1])
		full++
	}
	return text + strings.Repeat(" ", columns-full)
}

// isBlock reports whether a letter is part of a drawing.
func isBlock(r rune) bool { return strings.ContainsRune(steps+parts, r) }
