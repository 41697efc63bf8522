// SPDX-License-Identifier: Apache-2.0

package monitor

import "github.com/metehq/mete/api"

// A Source counts the decisions of a limiter and knows the state of its server. It must be safe for concurrent
// use. A [Monitor] polls it once per second.
type Source interface {
	// Totals returns the counts since the start. Counters must not decrease.
	Totals() Totals

	// State returns the state. The caller may keep it. [Monitor] fills in the policy's version, number of rules
	// and expiry.
	State() api.ServerState
}

// Totals holds counts since the start.
type Totals struct {
	Allowed, Denied uint64 // decisions, by outcome
	Shadow          uint64 // requests that rules would have denied
	Degraded        uint64 // decisions without the store

	// Rules holds the counts of single rules in any order. A rule that was added again may start at 0.
	Rules []RuleTotals

	// Decisions and Store are histograms of the time of decisions and of a remote store. A histogram without
	// buckets means that nothing is measured.
	Decisions, Store Histogram
}

// RuleTotals holds the counts of one rule. Allowed and Denied count the decisions that it made.
type RuleTotals struct {
	Rule                                    string
	Allowed, Denied, Shadow, Near, Degraded uint64
}

// A Histogram counts durations. Counts[i] counts durations of at most Bounds[i] seconds that are in no earlier
// bucket. Bounds ascend. Counts has one more element than Bounds, for all longer durations.
type Histogram struct {
	Bounds []float64
	Counts []uint64
}
