// SPDX-License-Identifier: Apache-2.0

package policytest

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/parse"
	"github.com/metehq/mete/policy"
)

// Read returns the tests of the policy file of m, in the order of the file, and warnings. It reports all errors, as
// [policy.Errors]. It does not run the tests.
func Read(m *policy.Matcher) ([]Test, []policy.Warning, error) { return read(m.TestSection(), m) }

// Load is [policy.Load] for files with tests: its [policy.Errors] include errors of the tests. If the rules are
// invalid, Load does not check the names of rules in tests.
func Load(file []byte, opts policy.Options) (*policy.Matcher, error) {
	m, err := policy.Load(file, opts)
	var ofRules, ofTests policy.Errors
	var found error
	if err != nil && !errors.As(err, &ofRules) {
		return nil, err // no policy at all
	}
	if m != nil {
		_, _, found = Read(m)
	} else {
		var whole struct {
			Tests json.RawMessage `json:"tests"`
		}
		if json.Unmarshal(file, &whole) == nil && whole.Tests != nil {
			_, _, found = read(whole.Tests, nil)
		}
	}
	errors.As(found, &ofTests)
	if all := append(slices.Clone(ofRules), ofTests...); len(all) > 0 {
		return nil, all
	}
	return m, nil
}

type reader struct {
	*parse.Report
	in           parse.Tests
	matcher      *policy.Matcher      // nil if the policy has errors
	names        map[string]bool      // already used
	badAddresses map[*parse.Node]bool // already reported
	requests     int                  // so far
	known        references
	tests        []Test
	warned       []policy.Warning
}

func read(section []byte, m *policy.Matcher) ([]Test, []policy.Warning, error) {
	if section == nil {
		return nil, nil, nil
	}
	r := reader{Report: &parse.Report{}, in: m.InspectTests(), matcher: m, names: map[string]bool{}, badAddresses: map[*parse.Node]bool{}}
	r.known = r.findReferences()
	whole := slices.Concat([]byte(`{"tests":`), section, []byte("}"))
	if root := r.Parse(whole, policy.MaxFileBytes+len(whole)); root != nil {
		r.readSection(root.Field("tests"))
	}
	var found policy.Errors
	for _, e := range r.Errors() {
		found = append(found, policy.Error(e))
	}
	if found != nil {
		return nil, nil, found
	}
	return r.tests, r.warned, nil
}

func (r *reader) readSection(n *parse.Node) {
	list, _ := r.Items(n, "tests", false, MaxTests)
	for _, item := range list {
		if r.readTest(item); r.requests > MaxFileRequests {
			r.AddAt(item, fmt.Sprintf("the tests of a file may make at most %d requests together", MaxFileRequests), "replace many requests by one with a higher cost")
			return
		}
	}
}

func (r *reader) readTest(n *parse.Node) {
	o := r.Object(n, r.in.Test)
	if o == nil {
		return
	}
	t := Test{Path: n.Path, Begin: DefaultBegin}
	if f := o.Require("name", "describe the test in words"); f != nil {
		t.Name = r.readTestName(f)
	}
	if f := o.Field("at"); f != nil {
		if begin := r.Instant(f, "at"); !begin.IsZero() && r.checkInstant(f, begin) {
			t.Begin = begin.UTC()
		}
	}
	base := attributesOf{Map: policy.Map{}}
	if f := o.Field("request"); f != nil {
		r.readAttributes(&base, f, "request")
	}
	steps := o.Field("steps")
	switch {
	case steps == nil && o.Count(r.in.StepFields...) == 0:
		if !o.HasMisspelled("steps") {
			o.Require("steps", "or expect, for a single request")
		}
	case steps == nil:
		s := Step{Path: n.Path, At: bucket.At(t.Begin)}
		r.readStep(&t, s, o, base)
	case o.Count(r.in.StepFields...) > 0:
		i := slices.IndexFunc(n.Fields, func(f parse.Member) bool { return slices.Contains(r.in.StepFields, f.Name) })
		r.AddAt(n.Fields[i].Value, fmt.Sprintf("a test with steps cannot also have %s", n.Fields[i].Name), "move it into a step")
	default:
		r.readSteps(&t, steps, base)
	}
	if made := t.Requests(); made > MaxTestRequests {
		r.AddAt(n, fmt.Sprintf("a test may make at most %d requests, not %d", MaxTestRequests, made), "replace many requests by one with a higher cost")
	} else {
		r.requests += made
	}
	r.tests = append(r.tests, t)
}

func (r *reader) readTestName(n *parse.Node) string {
	name, ok := r.String(n, "test name", maxTestNameBytes)
	switch {
	case !ok:
	case strings.TrimSpace(name) == "":
		r.Add(n, "test name must not be empty", "")
	case strings.IndexFunc(name, func(c rune) bool { return !unicode.IsPrint(c) }) >= 0:
		r.Add(n, "test name must be printable, and on one line", "")
	case r.names[name]:
		r.Add(n, "test name is already used by an earlier test", "")
	}
	r.names[name] = true
	return name
}

func (r *reader) checkInstant(n *parse.Node, at time.Time) bool {
	if at.Before(time.Unix(0, 0)) || at.After(testsEnd) {
		r.AddAt(n, fmt.Sprintf("a test must take place between 1970 and %d", testsEnd.Year()), "")
		return false
	}
	return true
}

func (r *reader) readSteps(t *Test, n *parse.Node, base attributesOf) {
	list, _ := r.Items(n, "steps", true, MaxTestSteps)
	last := bucket.At(t.Begin) // the time of the last request so far
	for _, item := range list {
		o := r.Object(item, r.in.Step)
		if o == nil {
			continue
		}
		s := Step{Path: item.Path, At: last}
		if !r.readBegin(&s, t, o) {
			return // the times of later steps are unknown
		}
		if r.readStep(t, s, o, r.changeAttributes(o, base)); len(t.Steps) > 0 {
			end := &t.Steps[len(t.Steps)-1]
			last = end.Instant(end.Times - 1)
		}
	}
}

func (r *reader) readBegin(s *Step, t *Test, o *parse.Object) bool {
	after, at := o.Field("after"), o.Field("at")
	switch {
	case after != nil && at != nil:
		r.AddAt(at, "a step has either after (since the last request) or at (since the test began)", "keep one of them")
		return false
	case after != nil:
		d, ok := r.Duration(after, "after", "100ms")
		s.At = s.At.Add(d)
		return ok && r.checkInstant(after, s.At.Time())
	case at == nil:
		return true
	}
	moment, err := time.Parse(time.RFC3339, at.Text)
	if err != nil || at.Kind != parse.KindText {
		d, err := bucket.ParseDuration(at.Text)
		if err != nil || at.Kind != parse.KindText || d%time.Microsecond != 0 {
			r.Add(at, "at must be the time since the test began, or a timestamp", `as in "90s" or 2026-01-02T15:04:05Z`)
			return false
		}
		moment = t.Begin.Add(d)
	}
	last := s.At
	switch s.At = bucket.At(moment); {
	case !r.checkInstant(at, moment):
		return false
	case s.At < last:
		r.Add(at, fmt.Sprintf("the step begins before the previous request at %s", last.Time().Format(time.RFC3339Nano)), "")
		return false
	}
	return true
}

func (r *reader) readStep(t *Test, s Step, o *parse.Object, attrs attributesOf) {
	s.Times, s.attributes, s.numbered = 1, attrs.Map, attrs.numbered
	if f := o.Field("times"); f != nil {
		if n, err := strconv.Atoi(f.Text); f.Kind != parse.KindNumber || err != nil || n < 1 || n > MaxTestRequests {
			r.Add(f, fmt.Sprintf("times must be a whole number from 1 to %d", MaxTestRequests), "")
		} else {
			s.Times = n
		}
	}
	if f := o.Field("every"); f != nil {
		s.Every = r.readEvery(&s, f, o.Field("times") == nil)
	}
	if f := o.Field("cost"); f != nil {
		s.Cost, _ = r.Tokens(f, "cost")
	}
	if f := o.Field("max_wait"); f != nil {
		s.MaxWait, _ = r.Duration(f, "max_wait", "2s")
	}
	if f := o.Field("runs"); f != nil {
		d, ok := r.Duration(f, "runs", "10s")
		if s.Runs = d; ok && d > MaxRuns {
			r.Add(f, fmt.Sprintf("runs must be at most %s", formatDuration(MaxRuns)), "")
		}
	}
	r.readResponse(&s, o)
	r.checkAddress(&s, attrs)
	r.warnUnreadResponse(&s, o)
	if f := o.Field("expect"); f != nil {
		r.readExpect(&s, f)
	}
	t.Steps = append(t.Steps, s)
}

func (r *reader) readEvery(s *Step, f *parse.Node, once bool) time.Duration {
	d, ok := r.Duration(f, "every", "10ms")
	switch {
	case !ok:
		return 0
	case once:
		r.AddAt(f, "every requires several requests", "set times")
		return 0
	case s.Times > 1 && d > testsEnd.Sub(s.At.Time())/time.Duration(s.Times-1):
		r.AddAt(f, fmt.Sprintf("a test must take place between 1970 and %d", testsEnd.Year()), "")
		return 0
	}
	return d
}
