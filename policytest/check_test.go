// SPDX-License-Identifier: Apache-2.0

package policytest_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/metehq/mete/policytest"
)

func TestCheck(t *testing.T) {
	policytest.Check(t, load(t, read(t, "testdata/passing.json")))
}

// A recorder is a test that notes what it is told.
type recorder struct {
	*testing.T
	name        string
	skip        string   // the subtest that is not to be run
	errors, log []string // by all subtests
	parent      *recorder
}

func (r *recorder) Run(name string, f func(*recorder)) bool {
	if name != r.skip {
		f(&recorder{T: r.T, name: name, parent: r})
	}
	return true
}

func (r *recorder) Context() context.Context { return r.T.Context() }

func (r *recorder) Errorf(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if r.parent != nil {
		r.parent.errors = append(r.parent.errors, r.name+": "+text)
		return
	}
	r.errors = append(r.errors, text)
}

func (r *recorder) Logf(format string, args ...any) {
	r.log = append(r.log, fmt.Sprintf(format, args...))
}

func TestCheck_Fails(t *testing.T) {
	r := &recorder{T: t}
	policytest.Check(r, load(t, `[{"name": "good", "expect": "allowed"}, {"name": "bad", "request": {"header:x-user": "u"}, "expect": "denied"}]`))
	if len(r.errors) != 1 || !strings.HasPrefix(r.errors[0], `bad: /tests/1/expect: test "bad": want denied; got allowed by free`) ||
		!strings.Contains(r.errors[0], "\n\trule free applies") {
		t.Errorf("errors %q, want one of bad that says why", r.errors)
	}
	if len(r.log) != 2 {
		t.Errorf("log %q, want what the tests leave out", r.log)
	}
}

func TestCheck_BoundsFailures(t *testing.T) {
	r := &recorder{T: t}
	step := `{"expect": "denied"}`
	policytest.Check(r, load(t, `[{"name": "bad", "steps": [`+strings.Repeat(step+",", 29)+step+`]}]`))
	if got := r.errors[len(r.errors)-1]; len(r.errors) != policytest.MaxFailures+1 || got != "bad: 10 more failures are not shown" {
		t.Errorf("%d errors, the last of which is %q", len(r.errors), got)
	}
}

// A file whose tests got lost on the way would pass for ever.
func TestCheck_NeedsTests(t *testing.T) {
	r := &recorder{T: t}
	policytest.Check(r, load(t, `[]`))
	if len(r.errors) != 1 {
		t.Errorf("errors %q, want that there are no tests", r.errors)
	}
}

func TestCheck_Filtered(t *testing.T) {
	r := &recorder{T: t, skip: "bad"}
	policytest.Check(r, load(t, `[{"name": "good", "expect": "allowed"}, {"name": "bad", "expect": "denied"}]`))
	if len(r.errors) != 0 || len(r.log) != 0 {
		t.Errorf("errors %q, log %q: want neither, as not all tests were run", r.errors, r.log)
	}
}
