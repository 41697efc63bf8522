// SPDX-License-Identifier: Apache-2.0

package policytest

import (
	"fmt"
	"strings"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/policy"
)

// A Failure is an expectation that was not met.
type Failure struct {
	Path string // JSON Pointer (RFC 6901) to the expectation in the policy file

	Test    string        // its name
	Step    int           // from 1; 0 if the test is a single step
	Request int           // the first request of the step, from 1, that did not meet it
	Times   int           // the number of requests in the step
	After   time.Duration // the time of that request since the test began

	Want, Got string // in words

	// Why explains the result, one fact per line: the request, the rules, and their buckets.
	Why []string

	step     *Step
	decision mete.Decision
}

// String describes the failure on one line.
func (f Failure) String() string {
	test := fmt.Sprintf("test %q", f.Test)
	if where := f.Place(); where != "" {
		test += ", " + where
	}
	return fmt.Sprintf("%s: want %s; got %s", test, f.Want, f.Got)
}

// Place locates the request: "step 2, request 1 of 20, after 100ms". It is empty if a test makes a single request
// immediately.
func (f Failure) Place() string {
	var parts []string
	if f.Step > 0 {
		parts = append(parts, fmt.Sprintf("step %d", f.Step))
	}
	if f.Times > 1 {
		parts = append(parts, fmt.Sprintf("request %d of %d", f.Request, f.Times))
	}
	if f.After > 0 {
		parts = append(parts, "after "+formatDuration(f.After))
	}
	return strings.Join(parts, ", ")
}

// complete sets the fields of f that depend on the i'th step of t.
func (f *Failure) complete(t *Test, i int, m *policy.Matcher) {
	f.Test = t.Name
	if f.step.Path != t.Path {
		f.Step = i + 1
	}
	at := f.step.Instant(f.Request - 1)
	f.After = time.Duration(at-bucket.At(t.Begin)) * time.Microsecond
	f.Why = f.explain(m, at)
}
