// SPDX-License-Identifier: Apache-2.0

package top

import (
	"math"
	"slices"
	"strings"

	"charm.land/lipgloss/v2"

	"github.com/metehq/mete/api"
)

// maxHistory bounds the stored rates. No terminal is wider.
const maxHistory = 400

// rateKinds are the kinds of traffic in display order. at is the index in [api.RuleCounts].
var rateKinds = []struct {
	name  string
	at    int
	style lipgloss.Style
}{{"allowed", 0, green}, {"shadow", 2, violet}, {"denied", 1, red}, {"degraded", 4, yellow}}

// A history contains the rates of each kind of traffic, oldest first.
type history struct {
	rates [len(api.RuleCounts{})][]float64
}

// add adds the rates of a rule, or of all rules if rule is empty.
func (h *history) add(t *api.Traffic, rule string) {
	var sums api.RuleCounts
	for name, counts := range t.Rules {
		if rule == "" || rule == name {
			for kind, n := range counts {
				sums[kind] += n
			}
		}
	}
	for kind, n := range sums {
		rates := append(h.rates[kind], float64(n)/max(t.Window, 1))
		h.rates[kind] = slices.Delete(rates, 0, max(len(rates)-maxHistory, 0))
	}
}

func (h *history) last(kind int) float64 {
	if n := len(h.rates[kind]); n > 0 {
		return h.rates[kind][n-1]
	}
	return 0
}

// Block characters of growing height and growing width.
var (
	heights = []rune("▁▂▃▄▅▆▇█")
	parts   = []rune("▏▎▍▌▋▊▉█")
)

// sparkline draws the last values, one per column. The highest value is a full block, and positive values are
// always visible.
func sparkline(values []float64, columns int) string {
	values = values[max(len(values)-max(columns, 0), 0):]
	var b strings.Builder
	for _, v := range values {
		at := 0
		if v > 0 {
			at = 1 + int(math.Round(v/slices.Max(values)*float64(len(heights)-2)))
		}
		b.WriteRune(heights[at])
	}
	return b.String()
}

// shareBar draws a share in eighths of columns.
func shareBar(part float64, columns int) string {
	eighths := int(math.Round(min(max(part, 0), 1) * float64(8*columns)))
	if part > 0 {
		eighths = max(eighths, 1)
	}
	bar := strings.Repeat("█", eighths/8)
	if rest := eighths % 8; rest > 0 {
		bar += string(parts[rest-1])
	}
	return bar + strings.Repeat(" ", columns-(eighths+7)/8)
}
