// SPDX-License-Identifier: Apache-2.0

// Package spell guesses what a misspelt word was meant to be.
package spell

// Nearest returns the known word that s most likely was meant to be, or "".
func Nearest(s string, known []string) string {
	best, least := "", max(2, len(s)/3)+1
	for _, k := range known {
		if d := distance(s, k); d < least && d < max(len(s), len(k)) {
			best, least = k, d
		}
	}
	return best
}

// distance is the number of letters to insert, delete, replace or swap with
// their neighbor that turns a into b.
func distance(a, b string) int {
	var before []int
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		next := make([]int, len(b)+1)
		next[0] = i
		for j := 1; j <= len(b); j++ {
			differ := 1
			if a[i-1] == b[j-1] {
				differ = 0
			}
			next[j] = min(row[j]+1, next[j-1]+1, row[j-1]+differ)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				next[j] = min(next[j], before[j-2]+1)
			}
		}
		before, row = row, next
	}
	return row[len(b)]
}
