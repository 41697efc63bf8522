// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"slices"

	"github.com/metehq/mete/internal/parse"
)

// stepFields are the fields that a test of one step has itself.
var stepFields = []string{"times", "every", "cost", "max_wait", "runs", "status", "grpc", "bytes", "response_headers", "usage", "expect"}

// TestSection returns the tests section of the file as JSON, or nil. Package policytest parses it.
func (m *Matcher) TestSection() []byte { return m.tests }

// InspectTests returns the parts of m and of the language that package policytest needs. It is not part of the API.
// A nil m is an invalid policy.
func (m *Matcher) InspectTests() parse.Tests {
	t := parse.Tests{Test: testTable, Step: stepTable, Expect: expectTable, Usage: usageTable, StepFields: stepFields}
	if m == nil {
		return t
	}
	m.anyLimit(func(l *Limit) bool {
		if !slices.Contains(t.Reasons, l.Reason) {
			t.Reasons = append(t.Reasons, l.Reason)
		}
		for _, s := range l.Stages {
			if !slices.Contains(t.Stages, s.Share) {
				t.Stages = append(t.Stages, s.Share)
			}
		}
		return false
	})
	return t
}

// Parts returns the reason and the hint of an attribute error. Parts returns the reason of an attribute error and a
// hint.
func (e *attributeError) Parts() (reason, hint string) { return e.reason, e.hint }

// readTests keeps the section tests.
func (c *compiler) readTests(n *parse.Node) {
	if n != nil {
		c.matcher.tests = n.AppendJSON(nil)
	}
}
