// SPDX-License-Identifier: Apache-2.0

package monitor

import "github.com/metehq/mete/api"

// A Source counts the decisions of a limiter and knows the state of its server. It must be
// safe for concurrent use. A [Monitor] asks it once a second.
type Source interface {
	// Totals returns the counts since the start. Counters must not decrease.
	Totals() Totals

	// State returns the state. The caller may keep the result. [Monitor] fills in the
	// policy's version, number of rules and expiry.
	State() api.ServerState
}

// Totals are counts since the start.
type Totals struct {
	Allowed, Denied uint64 // decisions, by outcome
	Shadow          uint64 // requests that rules would have denied
	Degraded        uint64 // decisions without the store

	// Rules are the counts of single rules, in any order. A rule that comes back may begin
	// at 0 again.
	Rules []RuleTotals

	// Decisions and Store are the times that decisions and a remote store took. A histogram
	// without buckets says that nobody measures.
	Decisions, Store Histogram
}

// RuleTotals are the counts of one rule. Allowed and Denied are the decisions that it made.
type RuleTotals struct {
	Rule                                    string
	Allowed, Denied, Shadow, Near, Degraded uint64
}

// A Histogram counts durations. Counts[i] are the durations of at most Bounds[i] seconds
// that no earlier bucket has. Bounds ascend. The last of the Counts, one more than there
// are Bounds, has all longer ones.
type Histogram struct {
	Bounds []float64
	Counts []uint64
}
