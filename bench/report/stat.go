// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"slices"
)

// A Stat summarizes the rounds of a figure.
type Stat struct {
	Median float64 `json:"median"`
	Min    float64 `json:"min"`
	Max    float64 `json:"max"`
}

// NewStat summarizes at least one value. It sorts the slice.
func NewStat(values []float64) *Stat {
	slices.Sort(values)
	n := len(values)
	return &Stat{Median: (values[(n-1)/2] + values[n/2]) / 2, Min: values[0], Max: values[n-1]}
}

// String is Format with [Number].
func (s *Stat) String() string { return s.Format(Number) }

// Format formats the median with number, and also the range if it is wide.
func (s *Stat) Format(number func(float64) string) string {
	text := number(s.Median)
	if s.Max > wide*s.Min && s.Max-s.Min > 1 {
		text += fmt.Sprintf(" [%s–%s]", number(s.Min), number(s.Max))
	}
	return text
}

// wide is the ratio of the maximum to the minimum from which the range is shown.
const wide = 1.2

// Number formats f with one decimal below 100, and none above.
func Number(f float64) string {
	if f >= 100 || f == 0 {
		return fmt.Sprintf("%.0f", f)
	}
	return fmt.Sprintf("%.1f", f)
}
