// SPDX-License-Identifier: Apache-2.0

// Package prose words things for people, in the same way for all commands.
package prose

import (
	"fmt"
	"time"

	"github.com/metehq/mete/internal/prose"
	"github.com/metehq/mete/policy"
)

// Duration formats d, at least 0, as [prose.Duration] does.
func Duration(d time.Duration) string { return prose.Duration(d) }

// Roughly rounds a time as people say it: to minutes from 48 of them on, then to hours.
func Roughly(d time.Duration) time.Duration {
	for _, step := range []time.Duration{time.Minute, time.Hour} {
		if d >= 48*step {
			d = d.Round(step)
		}
	}
	return d.Round(time.Second)
}

// Count counts things. The plural is the word with an s unless given.
func Count[N int | int64 | uint64](n N, one string, many ...string) string {
	switch {
	case n == 1:
		return "1 " + one
	case len(many) > 0:
		return fmt.Sprintf("%d %s", n, many[0])
	}
	return fmt.Sprintf("%d %ss", n, one)
}

// Mode is the word of policy files for r's mode.
func Mode(r *policy.Rule) string {
	return r.Mode.String()
}
