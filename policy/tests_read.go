// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/metehq/mete/bucket"
)

var (
	stepFields = []string{"times", "every", "cost", "max_wait", "expect"} // that a test of one step has itself

	testSchema = schema{what: "a test", fields: slices.Concat([]string{"name", "at", "request", "steps"}, stepFields)}
	stepSchema = schema{
		what:   "a step",
		fields: slices.Concat([]string{"after", "at", "with", "without"}, stepFields),
		inside: "the test; a step says what is different, in with and without", insideFields: []string{"request"},
	}
)

// A testReader reads the tests of a file.
type testReader struct {
	*compiler
	names        map[string]bool // that are taken
	badAddresses map[*node]bool  // that were reported
	requests     int             // so far
	known        references
}

// readTests reads the tests of a file, whose rules and overrides are known.
func (c *compiler) readTests(n *node) {
	if n == nil {
		return
	}
	r := testReader{compiler: c, names: map[string]bool{}, badAddresses: map[*node]bool{}, known: c.references()}
	list, _ := c.list(n, "tests", false, MaxTests)
	for _, item := range list {
		if r.test(item); r.requests > MaxFileRequests {
			c.absent(item, fmt.Sprintf("the tests of a file make at most %d requests together", MaxFileRequests), "a request with a cost stands for many")
			return
		}
	}
}

// test reads one test.
func (r *testReader) test(n *node) {
	o := r.object(n, testSchema)
	if o == nil {
		return
	}
	t := Test{Path: n.path, Begin: TestsBegin}
	if f := o.need("name", "what the test shows, in words"); f != nil {
		t.Name = r.testName(f)
	}
	if f := o.field("at"); f != nil {
		if begin := r.compiler.instant(f, "at"); !begin.IsZero() && r.inTime(f, begin) {
			t.Begin = begin.UTC()
		}
	}
	base := attributesOf{Map: Map{}}
	if f := o.field("request"); f != nil {
		r.attributes(&base, f, "request")
	}
	steps := o.field("steps")
	switch {
	case steps == nil && o.count(stepFields...) == 0:
		if !o.meantAny("steps") {
			o.need("steps", "or, for a single request, expect")
		}
	case steps == nil:
		s := Step{Path: n.path, At: bucket.At(t.Begin)}
		r.step(&t, s, o, base)
	case o.count(stepFields...) > 0:
		i := slices.IndexFunc(n.fields, func(f field) bool { return slices.Contains(stepFields, f.name) })
		r.absent(n.fields[i].value, fmt.Sprintf("a test that has steps has no %s of its own", n.fields[i].name), "move it into a step")
	default:
		r.steps(&t, steps, base)
	}
	if made := t.Requests(); made > MaxTestRequests {
		r.absent(n, fmt.Sprintf("a test makes at most %d requests, not %d", MaxTestRequests, made), "a request with a cost stands for many")
	} else {
		r.requests += made
	}
	r.matcher.tests = append(r.matcher.tests, t)
}

// testName reads the name of a test.
func (r *testReader) testName(n *node) string {
	name, ok := r.text(n, "test name", maxTestNameBytes)
	switch {
	case !ok:
	case strings.TrimSpace(name) == "":
		r.add(n, "test name must not be empty", "")
	case strings.IndexFunc(name, func(c rune) bool { return !unicode.IsPrint(c) }) >= 0:
		r.add(n, "test name must be printable, and on one line", "")
	case r.names[name]:
		r.add(n, "test name is taken by an earlier test", "")
	}
	r.names[name] = true
	return name
}

// inTime checks that an instant can be reckoned with.
func (r *testReader) inTime(n *node, at time.Time) bool {
	if at.Before(time.Unix(0, 0)) || at.After(testsEnd) {
		r.absent(n, fmt.Sprintf("a test happens between 1970 and %d", testsEnd.Year()), "")
		return false
	}
	return true
}

// steps reads the steps of t.
func (r *testReader) steps(t *Test, n *node, base attributesOf) {
	list, _ := r.list(n, "steps", true, MaxTestSteps)
	last := bucket.At(t.Begin) // request so far
	for _, item := range list {
		o := r.object(item, stepSchema)
		if o == nil {
			continue
		}
		s := Step{Path: item.path, At: last}
		if !r.begin(&s, t, o) {
			return // the times of later steps are not known
		}
		if r.step(t, s, o, r.change(o, base)); len(t.Steps) > 0 {
			end := &t.Steps[len(t.Steps)-1]
			last = end.Instant(end.Times - 1)
		}
	}
}

// begin reads when a step begins.
func (r *testReader) begin(s *Step, t *Test, o *object) bool {
	after, at := o.field("after"), o.field("at")
	switch {
	case after != nil && at != nil:
		r.absent(at, "a step says either after, since the last request, or at, since the test began", "keep one of them")
		return false
	case after != nil:
		d, ok := r.duration(after, "after", "100ms")
		s.At = s.At.Add(d)
		return ok && r.inTime(after, s.At.Time())
	case at == nil:
		return true
	}
	moment, err := time.Parse(time.RFC3339, at.text)
	if err != nil || at.kind != isText {
		d, err := bucket.ParseDuration(at.text)
		if err != nil || at.kind != isText || d%time.Microsecond != 0 {
			r.add(at, "at must be how long after the test began the step does, or an instant", `as in "90s" or 2026-01-02T15:04:05Z`)
			return false
		}
		moment = t.Begin.Add(d)
	}
	last := s.At
	switch s.At = bucket.At(moment); {
	case !r.inTime(at, moment):
		return false
	case s.At < last:
		r.add(at, fmt.Sprintf("time does not go back: the request before is made at %s", last.Time().Format(time.RFC3339Nano)), "")
		return false
	}
	return true
}

// step reads what a step does and expects, but not when, and appends it to t.
func (r *testReader) step(t *Test, s Step, o *object, attrs attributesOf) {
	s.Times, s.attributes, s.numbered = 1, attrs.Map, attrs.numbered
	if f := o.field("times"); f != nil {
		if n, err := strconv.Atoi(f.text); f.kind != isNumber || err != nil || n < 1 || n > MaxTestRequests {
			r.add(f, fmt.Sprintf("times must be a whole number from 1 to %d", MaxTestRequests), "")
		} else {
			s.Times = n
		}
	}
	if f := o.field("every"); f != nil {
		s.Every = r.every(&s, f, o.field("times") == nil)
	}
	if f := o.field("cost"); f != nil {
		s.Cost, _ = r.tokens(f, "cost")
	}
	if f := o.field("max_wait"); f != nil {
		s.MaxWait, _ = r.duration(f, "max_wait", "2s")
	}
	r.addresses(&s, attrs)
	if f := o.field("expect"); f != nil {
		r.expect(&s, f)
	}
	t.Steps = append(t.Steps, s)
}

// every reads how long it is from one of a step's requests to the next.
func (r *testReader) every(s *Step, f *node, once bool) time.Duration {
	d, ok := r.duration(f, "every", "10ms")
	switch {
	case !ok:
		return 0
	case once:
		r.absent(f, "every is from one request to the next, and there is only one", "say times, too")
		return 0
	case s.Times > 1 && d > testsEnd.Sub(s.At.Time())/time.Duration(s.Times-1):
		r.absent(f, fmt.Sprintf("a test happens between 1970 and %d", testsEnd.Year()), "")
		return 0
	}
	return d
}
