// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"context"
	"time"
)

// A Source knows what a limiter has done and how it is. It must be safe for
// concurrent use. It is asked once a second.
type Source interface {
	// Totals is what has been counted since the start. Counters must not go back.
	Totals() Totals

	// State is how things are. What it returns must not be changed afterwards.
	State() State
}

// Totals are counted since the start.
type Totals struct {
	Allowed, Denied uint64 // decisions, by their outcome
	Shadow          uint64 // what rules would have denied, and did not
	Degraded        uint64 // decisions that the store had no part in

	// Rules has those of single rules, in any order. A rule that comes back may begin
	// at 0 again.
	Rules []RuleTotals

	// Decisions and Store are how long decisions took, and what a store elsewhere was
	// asked. A histogram without buckets is one that is not measured.
	Decisions, Store Histogram
}

// RuleTotals are what one rule did. Allowed and Denied are decisions that it made.
type RuleTotals struct {
	Rule                                    string
	Allowed, Denied, Shadow, Near, Degraded uint64
}

// A Histogram counts durations. Counts[i] are those of at most Bounds[i], in seconds and
// ascending, that are in no earlier one; the last of the Counts, one more than there are
// Bounds, has all that are longer.
type Histogram struct {
	Bounds []float64
	Counts []uint64
}

// A State is how a server is, as the page is told.
type State struct {
	Instance string    `json:"instance"` // another one after each start
	Version  string    `json:"version"`
	Started  time.Time `json:"started"`
	Ready    bool      `json:"ready"`
	Ending   bool      `json:"ending"`

	Policy PolicyState `json:"policy"`
	Store  StoreState  `json:"store"`

	// Overrides is how many are in force, by their action.
	Overrides map[string]int `json:"overrides"`
}

// A PolicyState says which policy is in force, and what became of the last attempt to
// replace it. Version, Rules and Expires are filled in from the limiter.
type PolicyState struct {
	Source  string     `json:"source"` // where it comes from, for people
	Version int64      `json:"version"`
	Rules   int        `json:"rules"`
	Loaded  *time.Time `json:"loaded"`  // when it came into force; null: unknown
	Expires *time.Time `json:"expires"` // null for never
	Reloads uint64     `json:"reloads"`
	Refused uint64     `json:"refused"`
	Failing bool       `json:"failing"` // the last reload was refused: the policy before it stays in force
	Failed  *time.Time `json:"failed"`  // when
	Errors  []string   `json:"errors"`  // why, one mistake each
}

// A StoreState says where the buckets are and whether that answers.
type StoreState struct {
	Kind    string     `json:"kind"`    // memory, redis or postgres
	Address string     `json:"address"` // without a password
	State   string     `json:"state"`   // ok, degraded or down
	Breaker string     `json:"breaker"` // closed, open, half-open or none
	Since   *time.Time `json:"since"`   // of the state, where it is known
	Detail  string     `json:"detail"`  // in words; may be empty
	Buckets *int64     `json:"buckets"` // that are remembered; null: unknown
	Nodes   *int       `json:"nodes"`   // servers that share it; null: unknown
}

// A Viewer is who asks, and what they may.
type Viewer struct {
	Name    string // of their token; may be empty
	Role    string // in a word, for people
	Look    bool   // may see the data
	SeeKeys bool   // may see bucket keys, which hold addresses and names
}

// A Keys knows the keys that were masked for those who may not see them.
type Keys func(ctx context.Context, masked string) (key string, ok bool)
