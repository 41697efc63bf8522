// SPDX-License-Identifier: Apache-2.0

// Package denial finds the limits that a denial is recorded under.
package denial

import "github.com/metehq/mete"

// Worst returns the index of the denying status with the longest wait, or -1.
func Worst(statuses []mete.Status) int {
	at := -1
	for i := range statuses {
		if !statuses[i].Allowed && (at < 0 || statuses[i].RetryAfter > statuses[at].RetryAfter) {
			at = i
		}
	}
	return at
}

// EachShadow calls f with the index in d.Shadow of the worst status of each shadow rule that would have denied
// the request.
func EachShadow(d *mete.Denial, f func(at int)) {
	for i := 0; i < len(d.Shadow); {
		rule, n := d.Shadow[i].Rule, 1
		for i+n < len(d.Shadow) && d.Shadow[i+n].Rule == rule {
			n++
		}
		if at := Worst(d.Shadow[i : i+n]); at >= 0 {
			f(i + at)
		}
		i += n
	}
}
