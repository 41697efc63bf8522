// SPDX-License-Identifier: Apache-2.0

// Package playground plays made-up traffic against limits in virtual time, so that people see
// the effect of a limit before they have one. Each lane is a policy file with one rule. A
// [mete.Limiter] decides by it, over a store in memory whose clock stands at the time of each
// request. mete replay returns the same decisions for the same policy and trace, and both can
// be exported.
//
// The same input gives the same output, byte for byte.
package playground

import (
	"fmt"
	"strings"

	"github.com/metehq/mete/api"
)

// Bounds of a play. An input above them is an error.
const (
	// MaxLanes bounds the limits that are played side by side.
	MaxLanes = 4

	// MaxPhases bounds the phases of the traffic.
	MaxPhases = 6

	// MaxRequests bounds the requests of one lane, retries included.
	MaxRequests = 20_000

	// MaxSeconds bounds the virtual time of all phases together: a day.
	MaxSeconds = 24 * 60 * 60

	// MaxHand bounds the requests that are sent by hand.
	MaxHand = 200

	// MaxNameBytes bounds the name of a lane.
	MaxNameBytes = 40

	// MaxSeed is the largest seed: the largest integer that JavaScript holds.
	MaxSeed = 1<<53 - 1

	// Levels is the number of points of a bucket's level, from the first instant to the last.
	// If tokens come all at once, two more points show the step.
	Levels = 600
)

// Mistakes are all errors of an input.
type Mistakes []api.Mistake

// Error lists them, each on a line.
func (ms Mistakes) Error() string {
	lines := make([]string, len(ms))
	for i, m := range ms {
		lines[i] = m.String()
	}
	return "playground: " + strings.Join(lines, "\n")
}

// add adds an error.
func (ms *Mistakes) add(field, hint, format string, args ...any) {
	*ms = append(*ms, api.Mistake{Pointer: field, Detail: fmt.Sprintf(format, args...), Hint: hint})
}

// err returns ms, nil if it is empty.
func (ms Mistakes) err() error {
	if len(ms) == 0 {
		return nil
	}
	return ms
}
