// SPDX-License-Identifier: Apache-2.0

package policy

import "strings"

// closest returns the word that s was probably meant to be, or "".
func closest(s string, words []string) string {
	s = strings.ToLower(s)
	best, bestDistance := "", 1+len(s)/3 // one slip in short words, more in long ones
	for _, w := range words {
		if d := distance(s, w); d <= bestDistance && (best == "" || d < bestDistance) {
			best, bestDistance = w, d
		}
	}
	return best
}

// distance counts the insertions, deletions, replacements and swaps of
// neighbors that turn a into b. Words longer than anything we know are far.
func distance(a, b string) int {
	const far = 1 << 10
	if len(a) > MaxAttributeBytes || len(b) > MaxAttributeBytes {
		return far
	}
	before, prev, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range prev {
		prev[j] = j
	}
	for i := range len(a) {
		row[0] = i + 1
		for j := range len(b) {
			d := prev[j]
			if a[i] != b[j] {
				d++
			}
			d = min(d, prev[j+1]+1, row[j]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				d = min(d, before[j-1]+1)
			}
			row[j+1] = d
		}
		before, prev, row = prev, row, before
	}
	return prev[len(b)]
}
