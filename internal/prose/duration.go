// SPDX-License-Identifier: Apache-2.0

// Package prose formats limits and durations for people, for the command and the dashboard alike.
package prose

import (
	"fmt"
	"strings"
	"time"

	"github.com/metehq/mete/bucket"
)

const day = 24 * time.Hour

// Duration formats d ≥ 0 as "977ms", "1m30s", "9d", or "never" for [bucket.Never]. It has three digits below
// a minute and whole seconds above, rounded up: after the printed time, the wait is over.
func Duration(d time.Duration) string {
	if d == bucket.Never {
		return "never"
	}
	step := time.Second
	if d < time.Minute {
		for step = 1; d/step >= 1000; step *= 10 {
		}
	}
	if rest := d % step; rest > 0 && d <= bucket.Never-step {
		d += step - rest
	}
	days := d / day
	text := (d % day).String()
	for _, zero := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(text, zero) {
			text = text[:len(text)-2]
		}
	}
	switch {
	case days == 0:
		return text
	case d%day == 0:
		return fmt.Sprintf("%dd", days)
	}
	return fmt.Sprintf("%dd%s", days, text)
}

// Roughly rounds d to seconds, to minutes if it is at least 48 minutes, and to hours if it is at least 48 hours.
func Roughly(d time.Duration) time.Duration {
	for _, step := range []time.Duration{time.Minute, time.Hour} {
		if d >= 48*step {
			d = d.Round(step)
		}
	}
	return d.Round(time.Second)
}

// Count formats a number with a noun. The default plural adds an s.
func Count[N int | int64 | uint64](n N, one string, many ...string) string {
	switch {
	case n == 1:
		return "1 " + one
	case len(many) > 0:
		return fmt.Sprintf("%d %s", n, many[0])
	}
	return fmt.Sprintf("%d %ss", n, one)
}
