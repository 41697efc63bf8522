// SPDX-License-Identifier: Apache-2.0

package policytest

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/parse"
	"github.com/metehq/mete/policy"
)

// Bounds of the tests in a file.
const (
	MaxTests        = parse.MaxTests        // per file
	MaxTestSteps    = parse.MaxTestSteps    // per test
	MaxTestRequests = parse.MaxTestRequests // per test
	MaxFileRequests = parse.MaxFileRequests // per file
	MaxRuns         = time.Hour             // of a request

	maxTestNameBytes  = parse.MaxTestName
	maxTestValueBytes = 8192 // of an attribute's value
	maxTestTokens     = 1_000_000_000
)

// DefaultBegin is the default begin of a test, so that every test is repeatable. It is a Thursday at midnight UTC,
// where windows of an hour, a day and a week also begin.
var DefaultBegin = time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC)

// testsEnd is below the range of bucket.Instant.
var testsEnd = time.Date(2200, time.January, 1, 0, 0, 0, 0, time.UTC)

// A Test is an entry of tests in a policy file: requests in virtual time, and the expected decisions. [Read] parses
// it, and [Run] runs it. The caller must not modify it.
type Test struct {
	Name  string // unique, one line, at most 200 bytes
	Path  string // JSON Pointer (RFC 6901)
	Begin time.Time
	Steps []Step // at least one
}

// Requests returns the number of requests in t.
func (t *Test) Requests() (n int) {
	for i := range t.Steps {
		n += t.Steps[i].Times
	}
	return n
}

// A Step makes one request, or several similar ones.
type Step struct {
	Path    string         // JSON Pointer (RFC 6901)
	At      bucket.Instant // the time of the first request; not before the last request of the previous step
	Times   int            // the number of requests, at least 1
	Every   time.Duration  // the interval between requests; 0 is all at once
	Cost    bucket.Tokens  // of each request; 0 is the cost of the rules
	MaxWait time.Duration  // if above 0, a request may reserve tokens and wait this long
	Expect  Expectation

	// Runs is how long each admitted request runs until its response. It holds its slots in that time.
	Runs time.Duration

	// Response is the response to each admitted request. Without an outcome, requests keep their charge.
	Response policy.Response

	attributes policy.Map
	numbered   bool // some values contain [NumberPlaceholder]
}

// NumberPlaceholder is replaced, in the value of an attribute, by the number of the request in its step, from 1. With
// "key-{n}", each request comes from a different client.
const NumberPlaceholder = "{n}"

// Attributes returns the attributes of the step's n'th request, from 0. The caller must not modify them.
func (s *Step) Attributes(n int) policy.Map {
	if !s.numbered {
		return s.attributes
	}
	number := strconv.Itoa(n + 1)
	attrs := make(policy.Map, len(s.attributes))
	for name, value := range s.attributes {
		attrs[name] = strings.ReplaceAll(value, NumberPlaceholder, number)
	}
	return attrs
}

// Instant returns the time of the step's n'th request, from 0.
func (s *Step) Instant(n int) bucket.Instant {
	return s.At + bucket.Instant(n)*bucket.Instant(s.Every/time.Microsecond)
}

// An Expectation has the expectations about a step's requests. The zero Expectation has none. Decisions are expected of all
// requests; numbers that change with every request are expected of the last one.
type Expectation struct {
	Path string // JSON Pointer (RFC 6901); empty if nothing is expected

	Allowed *int    // the number of allowed requests; nil is any
	Denied  []Count // the number of requests that each rule or limit denies; nil is any
	Reason  string  // of denied requests; "" is any

	// WouldDeny is the number of requests that each rule in shadow would deny. Rules that it does not list
	// may deny any number. If it is empty but not nil, no rule may deny.
	WouldDeny []Count

	Rule     string   // the rule or limit that decides each request; "" is any
	Applies  []string // the enforced rules that apply to each request, in any order; nil is any
	Override *string  // the ID of the override that changes each decision; "" is none, nil is any

	// Of the last request:

	RetryAfter *time.Duration // of a denial
	Wait       *time.Duration // before it may start
	Remaining  []Amount       // in whole tokens unless a fraction is given; nil is any
	Cost       []Amount       // nil is any
	Stage      *string        // the share of the active stage, such as 80%; "" is none, nil is any

	fields []string // the fields that are set
}

// A Count is the number of requests that a rule or limit decides.
type Count struct {
	Name  string
	Times int
}

// An Amount is an amount of a limit, or of the deciding limit if Limit is empty.
type Amount struct {
	Limit  string
	Tokens bucket.Tokens
}

// Place returns the JSON Pointer to the first of fields that e has, or to e.
func (e *Expectation) Place(fields ...string) string {
	for _, f := range fields {
		if slices.Contains(e.fields, f) {
			return e.Path + "/" + f
		}
	}
	return e.Path
}
