// SPDX-License-Identifier: Apache-2.0

package exactness

import (
	"fmt"
	"html"
	"strings"
)

// Sizes of the chart in pixels.
const (
	chartNames  = 230 // the width of the contenders' names
	chartColumn = 54
	chartGap    = 24 // between the halves
	chartRow    = 22
	chartHead   = 118
	chartMargin = 36 // for the last condition, which is tilted
)

const chartStyle = `
text { font: 13px system-ui, sans-serif; fill: #1f2328; }
.head { font-weight: 600; }
.none { fill: #59636e; }
.kept { fill: #dff0e4; } .broken { fill: #f6c6c1; }
.number { text-anchor: middle; }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3; }
  .none { fill: #9198a1; }
  .kept { fill: #1f3d2b; } .broken { fill: #6e2b27; }
}
`

// Chart returns an SVG with a row per contender: tokens above the bound on the left, tokens lost on the right. Its colors
// follow the reader's color scheme, and each cell has its number, so that no fact is in the color alone.
func (r Results) Chart() string {
	half := chartColumn * len(Conditions)
	width := chartNames + 2*half + chartGap + chartMargin
	height := chartHead + chartRow*len(Contenders) + 8
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" role="img" aria-labelledby="title">`, width, height, width, height)
	b.WriteString("\n<title id=\"title\">Tokens above the bound and tokens lost, for each limiter and condition</title>\n<style>" + chartStyle + "</style>\n")
	for h, heading := range []string{"Tokens above the bound", "Tokens lost"} {
		x := chartNames + h*(half+chartGap)
		fmt.Fprintf(&b, "<text class=\"head\" x=\"%d\" y=\"18\">%s</text>\n", x, heading)
		for i, condition := range Conditions {
			left := x + i*chartColumn + chartColumn/2
			fmt.Fprintf(&b, "<text transform=\"translate(%d %d) rotate(-40)\">%s</text>\n", left-6, chartHead-8, html.EscapeString(condition.Name))
		}
	}
	for i, c := range Contenders {
		y := chartHead + i*chartRow
		fmt.Fprintf(&b, "<text x=\"0\" y=\"%d\">%s</text>\n", y+15, html.EscapeString(c.Title()))
		for j, condition := range Conditions {
			cell := r.Cells[c.Title()][condition.Name]
			for h, n := range []int{cell.Above, cell.Lost} {
				x := chartNames + h*(half+chartGap) + j*chartColumn
				writeSquare(&b, x, y, n, cell.Reason != "")
			}
		}
	}
	b.WriteString("</svg>\n")
	return b.String()
}

func writeSquare(b *strings.Builder, x, y, n int, missing bool) {
	middle := x + chartColumn/2
	if missing {
		fmt.Fprintf(b, "<text class=\"number none\" x=\"%d\" y=\"%d\">–</text>\n", middle, y+15)
		return
	}
	class := "kept"
	if n > 0 {
		class = "broken"
	}
	fmt.Fprintf(b, "<rect class=\"%s\" x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" rx=\"3\"/>", class, x+2, y+1, chartColumn-4, chartRow-2)
	fmt.Fprintf(b, "<text class=\"number\" x=\"%d\" y=\"%d\">%d</text>\n", middle, y+15, n)
}
