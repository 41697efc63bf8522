// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"slices"
)

// A Stat sums up a figure's rounds.
type Stat struct {
	Median float64 `json:"median"`
	Min    float64 `json:"min"`
	Max    float64 `json:"max"`
}

// NewStat sums up values, of which there is at least one. It sorts them.
func NewStat(values []float64) *Stat {
	slices.Sort(values)
	n := len(values)
	return &Stat{Median: (values[(n-1)/2] + values[n/2]) / 2, Min: values[0], Max: values[n-1]}
}

// String is Format with [Number].
func (s *Stat) String() string { return s.Format(Number) }

// Format shows the median, and the range where it is wide, with number for
// each.
func (s *Stat) Format(number func(float64) string) string {
	text := number(s.Median)
	if s.Max > wide*s.Min && s.Max-s.Min > 1 {
		text += fmt.Sprintf(" [%s–%s]", number(s.Min), number(s.Max))
	}
	return text
}

// wide is the ratio of the largest round to the smallest from which on the
// range is worth showing.
const wide = 1.2

// Number drops decimals that say nothing.
func Number(f float64) string {
	if f >= 100 || f == 0 {
		return fmt.Sprintf("%.0f", f)
	}
	return fmt.Sprintf("%.1f", f)
}
