// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"context"
	"errors"
	"net/netip"
	"time"
)

// Violations finds what was recorded of denied requests. It must be safe for concurrent
// use, and give up by itself what takes too long.
//
// Its errors are an [ErrViolationsSlow], an [ErrViolationsUnavailable], a [FilterError]
// or, for anything else, the server's own fault.
type Violations interface {
	// List returns at most f.Limit rows, newest first, from f.After on.
	List(ctx context.Context, f ViolationFilter) ([]Violation, error)

	// Histogram says when they were. It has no use for f.After and f.Limit.
	Histogram(ctx context.Context, f ViolationFilter) (ViolationHistogram, error)
}

// Why violations cannot be shown.
var (
	ErrViolationsSlow        = errors.New("dashboard: the database of the violations took too long")
	ErrViolationsUnavailable = errors.New("dashboard: the database of the violations does not answer")
)

// A FilterError says which part of a filter cannot be used, and what to write instead.
type FilterError struct{ Field, Detail string }

// Error implements error.
func (e *FilterError) Error() string { return "dashboard: filter: " + e.Field + ": " + e.Detail }

// A ViolationFilter says which rows are meant, and for whom. What is empty is no
// restriction.
type ViolationFilter struct {
	From, To     time.Time // To not included; both are always set
	Rule, Reason string
	Key, User    string
	Network      netip.Prefix
	Endpoint     string // how it begins, with the method or, where it begins with a slash, without
	Mode         string // enforced, shadow, or empty for both

	// SeeKeys says that who asks may see whose rows they are. Else those are to be
	// masked, and not to be found by what is masked.
	SeeKeys bool

	After ViolationPlace // the place of the last row before; zero: begin with the newest
	Limit int
}

// A ViolationPlace is where a row stands in a list.
type ViolationPlace struct {
	At time.Time
	ID int64
}

// A Violation is one row: a denied request, or several of one key within a second.
// Null is what is not known.
type Violation struct {
	ID         int64     `json:"id"`
	At         time.Time `json:"at"`      // the first
	LastAt     time.Time `json:"last_at"` // and the last denial that it stands for
	Denials    int64     `json:"denials"`
	Rule       string    `json:"rule"`
	Limit      string    `json:"limit"`
	Reason     string    `json:"reason"`
	Shadow     bool      `json:"shadow"` // was let through
	Key        *string   `json:"key"`
	User       *string   `json:"user"`
	Address    *string   `json:"address"` // or a network
	Endpoint   *string   `json:"endpoint"`
	Tokens     *float64  `json:"tokens"` // that the bucket held at the first
	Cost       float64   `json:"cost"`   // of all of them
	RetryAfter *float64  `json:"retry_after"`
	Node       string    `json:"node"`
}

// A ViolationHistogram says when denials were, in bins of Step seconds.
type ViolationHistogram struct {
	Start int64 `json:"start"` // of the first bin, in seconds since 1970
	Step  int64 `json:"step"`
	Bins  int   `json:"bins"`

	// Series are the rules with most denials, most first. Where there are too many
	// rules, the last one is of all others and has no name.
	Series []ViolationSeries `json:"series"`
	Rules  int64             `json:"rules"` // how many there are
	Rows   int64             `json:"rows"`
}

// A ViolationSeries has a number for each bin.
type ViolationSeries struct {
	Rule   string  `json:"rule"`
	Denied []int64 `json:"denied"`
	Shadow []int64 `json:"shadow"`
}
