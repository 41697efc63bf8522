// SPDX-License-Identifier: Apache-2.0

// Package playground runs synthetic traffic against limits in virtual time and explains the result. [Play] decides
// every request with a [mete.Limiter] over a memory store, so its decisions are the decisions of a server. mete
// replay makes the same decisions from the exported policy and trace.
//
// A lane is one limit, compiled from a policy file with one rule. The same input gives the same output, byte for byte.
package playground

import (
	"fmt"
	"strings"

	"github.com/metehq/mete/api"
)

// Bounds of an input. [Play] rejects larger inputs.
const (
	MaxLanes     = 4
	MaxPhases    = 6
	MaxRequests  = 20_000       // of one lane, retries included
	MaxSeconds   = 24 * 60 * 60 // virtual time of all phases
	MaxHand      = 200          // requests sent by hand
	MaxNameBytes = 40           // of a lane
	MaxSeed      = 1<<53 - 1    // the largest integer that JavaScript holds exactly

	// Levels is the number of points at which the level of a bucket is sampled, evenly from start to end. Two more
	// points show each step of a bucket that refills at intervals.
	Levels = 600
)

// InputErrors holds all errors of an input.
type InputErrors []api.ErrorDetail

func (ms InputErrors) Error() string {
	lines := make([]string, len(ms))
	for i, m := range ms {
		lines[i] = m.String()
	}
	return "playground: " + strings.Join(lines, "\n")
}

func (ms *InputErrors) add(field, hint, format string, args ...any) {
	*ms = append(*ms, api.ErrorDetail{Pointer: field, Detail: fmt.Sprintf(format, args...), Hint: hint})
}

// err returns ms, or nil if it is empty.
func (ms InputErrors) err() error {
	if len(ms) == 0 {
		return nil
	}
	return ms
}
