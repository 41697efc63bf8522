// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/metehq/mete/bucket"
)

var expectSchema = schema{what: "an expectation", fields: []string{
	"allowed", "denied", "rule", "reason", "retry_after", "remaining", "cost", "wait", "stage", "override", "applies", "would_deny"}}

// expect reads what a step expects.
func (r *testReader) expect(s *Step, n *node) {
	e := &s.Expect
	e.Path = n.path
	if n.kind != isObject {
		r.expectWord(s, n)
		return
	}
	o := r.object(n, expectSchema)
	if len(n.fields) == 0 {
		r.add(n, "the expectation is empty", "leave it out: the step then only makes requests")
	}
	for _, f := range n.fields {
		e.said = append(e.said, f.name)
	}
	r.allowedAndDenied(s, o)
	if f := o.field("rule"); f != nil {
		e.Rule, _ = r.rule(f, true, saidToApply)
	}
	if f := o.field("applies"); f != nil {
		e.Applies = r.applies(f)
	}
	if f := o.field("would_deny"); f != nil {
		e.WouldDeny = r.counts(f, s.Times, saidToShadow)
	}
	if f := o.field("reason"); f != nil {
		r.reason(s, f)
	}
	if f := o.field("override"); f != nil {
		e.Override = r.word(f, "override", r.known.overrides)
	}
	r.last(s, o)
}

// expectWord reads an expectation that is one word.
func (r *testReader) expectWord(s *Step, n *node) {
	switch {
	case n.kind == isText && n.text == "allowed":
		all := s.Times
		s.Expect.Allowed = &all
	case n.kind == isText && n.text == "denied":
		s.Expect.Allowed = new(int)
	case n.kind == isText && (r.known.rules[n.text] != nil || r.known.limits[n.text] != nil):
		r.add(n, "expect must be allowed, denied, or an object", fmt.Sprintf(`write { denied: %s }, or { rule: %s }`, n.text, n.text))
	default:
		r.add(n, "expect must be allowed, denied, or an object", `as in { denied: true, retry_after: "100ms" }`)
	}
}

// allowedAndDenied reads how many requests are allowed, and how many are denied by
// which rule.
func (r *testReader) allowedAndDenied(s *Step, o *object) {
	e := &s.Expect
	allowed, denied := o.field("allowed"), o.field("denied")
	if allowed != nil {
		if n, ok := r.number(allowed, "allowed", s.Times); ok {
			e.Allowed = &n
		}
	}
	switch {
	case denied == nil:
		r.implied(s, o)
	case denied.kind == isText || denied.kind == isObject:
		rest := s.Times
		if e.Allowed != nil {
			rest -= *e.Allowed
		}
		e.Denied = r.counts(denied, rest, saidToDeny)
		if denied.kind == isObject {
			rest = 0
			for _, c := range e.Denied {
				rest += c.Times
			}
		}
		r.isDenied(s, denied, rest)
	default:
		if n, ok := r.number(denied, "denied", s.Times); ok {
			r.isDenied(s, denied, n)
		}
	}
}

// isDenied notes that so many requests are denied.
func (r *testReader) isDenied(s *Step, f *node, n int) {
	allowed := s.Times - n
	switch e := &s.Expect; {
	case e.Allowed == nil && allowed >= 0:
		e.Allowed = &allowed
	case allowed < 0 || *e.Allowed != allowed:
		r.absent(f, fmt.Sprintf("allowed and denied do not add up to the %d of times", s.Times), "one of them is enough")
	case n == 0 && f.kind == isText:
		r.absent(f, "no request is denied, as all are allowed", "remove one of them")
	}
}

// implied notes what other expectations say of whether requests are denied.
func (r *testReader) implied(s *Step, o *object) {
	e := &s.Expect
	if e.Allowed != nil {
		return
	}
	denial, admission := o.count("reason", "retry_after"), o.count("wait")
	switch {
	case denial > 0 && admission > 0:
		r.absent(o.field("wait"), "who is denied does not wait", "retry_after says when to come back")
	case denial > 0:
		e.Allowed = new(int)
	case admission > 0:
		all := s.Times
		e.Allowed = &all
	}
}

// number reads how many requests of most there are: a number, or true for all.
func (r *testReader) number(f *node, what string, most int) (int, bool) {
	n, err := strconv.Atoi(f.text)
	switch {
	case f.kind == isBool && f.text == "true":
		return most, true
	case f.kind == isBool:
		return 0, true
	case f.kind != isNumber || err != nil || n < 0:
		r.add(f, what+" must be true, or how many of the requests are", "")
	case n > most:
		r.add(f, fmt.Sprintf("%s must be at most the %d of times", what, most), "")
	default:
		return n, true
	}
	return 0, false
}

// counts reads which rules deny how many requests: one that denies all of them, a
// list of those that each do, or an object with a number for each.
func (r *testReader) counts(f *node, all int, of said) []Count {
	counts := []Count{}
	switch {
	case f.kind == isObject && len(f.fields) == 0:
		r.add(f, "this must name a rule", "")
	case f.kind == isObject:
		for _, inner := range f.fields {
			n, ok := r.number(inner.value, "how many requests", all)
			if r.isRule(inner.value, inner.name, of == saidToDeny, of) && ok {
				counts = append(counts, Count{inner.name, n})
			}
		}
	case f.kind == isList && of == saidToShadow:
		list, _ := r.list(f, "would_deny", false, MaxMatches)
		for _, item := range list {
			if name, ok := r.rule(item, false, of); ok {
				counts = append(counts, Count{name, all})
			}
		}
	default:
		if name, ok := r.rule(f, of == saidToDeny, of); ok {
			counts = append(counts, Count{name, all})
		}
	}
	return counts
}

// applies reads which rules a request falls under.
func (r *testReader) applies(f *node) []string {
	names := []string{}
	list := []*node{f}
	if f.kind == isList {
		list, _ = r.list(f, "applies", false, MaxMatches)
	}
	for _, n := range list {
		name, ok := r.rule(n, false, saidToApply)
		switch {
		case ok && slices.Contains(names, name):
			r.add(n, "the rule is in the list already", "")
		case ok:
			names = append(names, name)
		}
	}
	return names
}

// reason reads why requests are denied.
func (r *testReader) reason(s *Step, f *node) {
	text, ok := r.text(f, "reason", maxTestValueBytes)
	switch {
	case !ok:
	case text == "store_error":
		r.add(f, "in a test the store always answers", "")
	case !slices.Contains(r.known.reasons, text) && !r.known.broken:
		hint := nearest(text, r.known.reasons)
		if hint == "" {
			hint = "known are " + enumerate(r.known.reasons, "and")
		}
		r.add(f, "no request is denied for that reason", hint)
	case s.Expect.Allowed != nil && *s.Expect.Allowed == s.Times:
		r.absent(f, "only a denial has a reason, and all requests are to be allowed", "")
	default:
		s.Expect.Reason = text
	}
}

// last reads what is expected of the last request.
func (r *testReader) last(s *Step, o *object) {
	e := &s.Expect
	if f := o.field("retry_after"); f != nil {
		if f.kind == isText && f.text == "never" {
			never := bucket.Never
			e.RetryAfter = &never
		} else {
			e.RetryAfter = r.wait(f, "retry_after", " or never")
		}
		if e.Allowed != nil && *e.Allowed == s.Times {
			r.absent(f, "only who is denied is told when to come back, and all requests are to be allowed", "")
		}
	}
	if f := o.field("wait"); f != nil {
		e.Wait = r.wait(f, "wait", "")
		if e.Allowed != nil && *e.Allowed == 0 {
			r.absent(f, "who is denied does not wait", "retry_after says when to come back")
		}
	}
	if f := o.field("remaining"); f != nil {
		e.Remaining = r.amounts(f, "remaining")
	}
	if f := o.field("cost"); f != nil {
		e.Cost = r.amounts(f, "cost")
	}
	if f := o.field("stage"); f != nil && f.kind == isNumber {
		r.add(f, "stage must be a string", fmt.Sprintf("write \"%s%%\"", f.text))
	} else if f != nil {
		e.Stage = r.word(f, "stage", r.known.stages)
	}
}

// wait reads a length of time.
func (r *testReader) wait(f *node, what, or string) *time.Duration {
	d, err := bucket.ParseDuration(f.text)
	switch {
	case f.kind != isText || err != nil:
		r.add(f, what+" must be a duration"+or, `as in "100ms"`)
	case d%time.Microsecond != 0:
		r.add(f, what+" must be whole microseconds", "")
	default:
		return &d
	}
	return nil
}

// amounts reads an amount of the limit that decides, or one for each limit.
func (r *testReader) amounts(f *node, what string) []Amount {
	if f.kind != isObject {
		if t, ok := r.amount(f, what); ok {
			return []Amount{{"", t}}
		}
		return nil
	}
	var amounts []Amount
	for _, inner := range f.fields {
		t, ok := r.amount(inner.value, what)
		if r.isRule(inner.value, inner.name, true, saidToApply) && ok {
			amounts = append(amounts, Amount{inner.name, t})
		}
	}
	return amounts
}
