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

// Bounds of the tests in a file. More are refused.
const (
	MaxTests        = parse.MaxTests        // of a file
	MaxTestSteps    = parse.MaxTestSteps    // of a test
	MaxTestRequests = parse.MaxTestRequests // of a test
	MaxFileRequests = parse.MaxFileRequests // of all tests of a file together

	maxTestNameBytes  = parse.MaxTestName
	maxTestValueBytes = 8192 // of an attribute's value
)

// TestsBegin is when a test begins that does not say. It is a Thursday at midnight UTC:
// windows of an hour, a day and a week begin then, too. Every test is repeatable:
// the time of day is not in it.
var TestsBegin = time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC)

// testsEnd is before what bucket.Instant can be reckoned with.
var testsEnd = time.Date(2200, time.January, 1, 0, 0, 0, 0, time.UTC)

// A Test is an entry of tests in a policy file: requests in virtual time, and what
// is expected of the decisions. [Read] checks it, and [Run] runs it.
// Like the matcher that it is of, it must not be changed.
type Test struct {
	Name  string // distinct, on one line, at most 200 bytes
	Path  string // JSON Pointer (RFC 6901) to it
	Begin time.Time
	Steps []Step // at least one
}

// Requests returns how many requests t makes.
func (t *Test) Requests() (n int) {
	for i := range t.Steps {
		n += t.Steps[i].Times
	}
	return n
}

// A Step makes one request, or several that are alike.
type Step struct {
	Path    string         // JSON Pointer to it
	At      bucket.Instant // of the first request; not before the last one of the step before
	Times   int            // how many, at least 1
	Every   time.Duration  // from one to the next; 0 is all at once
	Cost    bucket.Tokens  // that the request brings; 0 is the rules' own
	MaxWait time.Duration  // above 0: it reserves, and may wait so long
	Expect  Expect

	attributes policy.Map
	numbered   bool // some have the request's number in them
}

// Number stands, in the value of an attribute, for the number of the request in
// its step, from 1: "key-{n}" is another client each time.
const Number = "{n}"

// Attributes returns those of the step's n'th request, from 0. They must not be
// changed.
func (s *Step) Attributes(n int) policy.Map {
	if !s.numbered {
		return s.attributes
	}
	number := strconv.Itoa(n + 1)
	attrs := make(policy.Map, len(s.attributes))
	for name, value := range s.attributes {
		attrs[name] = strings.ReplaceAll(value, Number, number)
	}
	return attrs
}

// Instant returns when the step's n'th request is made, from 0.
func (s *Step) Instant(n int) bucket.Instant {
	return s.At + bucket.Instant(n)*bucket.Instant(s.Every/time.Microsecond)
}

// An Expect is what is expected of the decisions about a step's requests. The zero
// Expect is nothing. What a request counts for is expected of all of them, and
// numbers that change with every request are expected of the last one.
type Expect struct {
	Path string // JSON Pointer to it; empty where nothing is expected

	Allowed *int    // how many requests are allowed; nil is any number
	Denied  []Count // how many are denied by which rule, or limit; nil is by any
	Reason  string  // of those that are denied; "" is any

	// WouldDeny is how many requests rules in shadow would deny. What rules would
	// that are not there does not matter, but where it is empty and not nil, none may.
	WouldDeny []Count

	Rule     string   // or limit, that decides about each request; "" is any
	Applies  []string // the rules in force that each request falls under, in any order; nil is any
	Override *string  // the ID of what changes each decision; "" is none, nil is any

	// Of the last request:

	RetryAfter *time.Duration // of a denial
	Wait       *time.Duration // before it may start
	Remaining  []Amount       // in whole tokens unless a fraction is given; nil is any
	Cost       []Amount       // what it costs; nil is any
	Stage      *string        // the share that the stage in force is called by, such as 80%; "" is none, nil is any

	said []string // the fields that are there
}

// A Count says of how many requests a rule, or limit, decides something.
type Count struct {
	Name  string
	Times int
}

// An Amount is one of a limit, or of the one that decides where Limit is empty.
type Amount struct {
	Limit  string
	Tokens bucket.Tokens
}

// Place returns the JSON Pointer to the first of fields that e has, or else to e.
func (e *Expect) Place(fields ...string) string {
	for _, f := range fields {
		if slices.Contains(e.said, f) {
			return e.Path + "/" + f
		}
	}
	return e.Path
}
