// SPDX-License-Identifier: Apache-2.0

// Package spell suggests corrections of misspelled words.
package spell

import "strings"

// maxWordBytes is longer than any known word. Longer input is never compared.
const maxWordBytes = 128

// far is the distance between words that are not compared.
const far = 1 << 10

// Nearest returns the known word that s most likely stands for, ignoring case, or "". Among equally near words the
// first wins. The shortest words may have one error, and longer ones one more per three letters.
func Nearest(s string, known []string) string {
	if len(s) > maxWordBytes {
		return ""
	}
	s = strings.ToLower(s)
	best, least := "", 1+len(s)/3+1
	for _, k := range known {
		if d := Distance(s, k); d < least && d < max(len(s), len(k)) {
			best, least = k, d
		}
	}
	return best
}

// Distance counts the insertions, deletions, replacements and swaps of neighboring bytes that turn a into b.
func Distance(a, b string) int {
	if len(a) > maxWordBytes || len(b) > maxWordBytes {
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
