// SPDX-License-Identifier: Apache-2.0

package api

import "time"

// A Violation is one recorded denial, or several of one key within a second. Unknown values are null.
type Violation struct {
	ID         int64     `json:"id"`
	At         time.Time `json:"at"`      // time of the first denial
	LastAt     time.Time `json:"last_at"` // time of the last denial
	Denials    int64     `json:"denials"`
	Rule       string    `json:"rule"`
	Limit      string    `json:"limit"`
	Reason     string    `json:"reason"`
	Shadow     bool      `json:"shadow"` // the request was allowed because of shadow mode
	Key        *string   `json:"key"`
	User       *string   `json:"user"`
	Address    *string   `json:"address"` // address or network
	Endpoint   *string   `json:"endpoint"`
	Tokens     *float64  `json:"tokens"` // tokens in the bucket at the first denial
	Cost       float64   `json:"cost"`   // total cost of the denials
	RetryAfter *float64  `json:"retry_after"`
	Node       string    `json:"node"`
}

// Violations is the response of GET /v1/violations: one page, newest first.
type Violations struct {
	From time.Time   `json:"from"`
	To   time.Time   `json:"to"`
	Rows []Violation `json:"rows"`
	Next *string     `json:"next"` // cursor of the next page; null on the last page

	// Masked reports that the caller's role may not see keys, users and addresses.
	Masked bool `json:"masked"`
}

// A ViolationHistogram is the response of GET /v1/violations/histogram: denials per time bin of Step seconds.
type ViolationHistogram struct {
	Start int64 `json:"start"` // start of the first bin, in Unix seconds
	Step  int64 `json:"step"`
	Bins  int   `json:"bins"`

	// Series are the rules with the most denials, most first. If there are too many rules, the last series sums
	// up the others and has no name.
	Series []ViolationSeries `json:"series"`
	Rules  int64             `json:"rules"`
	Rows   int64             `json:"rows"`
}

// A ViolationSeries has one count per bin.
type ViolationSeries struct {
	Rule   string  `json:"rule"`
	Denied []int64 `json:"denied"`
	Shadow []int64 `json:"shadow"`
}
