// SPDX-License-Identifier: Apache-2.0

package policytest

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/parse"
	"github.com/metehq/mete/policy"
)

func (r *reader) readExpect(s *Step, n *parse.Node) {
	e := &s.Expect
	e.Path = n.Path
	if n.Kind != parse.KindObject {
		r.readExpectWord(s, n)
		return
	}
	o := r.Object(n, r.in.Expect)
	if len(n.Fields) == 0 {
		r.Add(n, "the expectation is empty", "remove it: the step then only makes requests")
	}
	for _, f := range n.Fields {
		e.fields = append(e.fields, f.Name)
	}
	r.readAllowedAndDenied(s, o)
	if f := o.Field("rule"); f != nil {
		e.Rule, _ = r.readRuleName(f, true, claimApplies)
	}
	if f := o.Field("applies"); f != nil {
		e.Applies = r.readApplies(f)
	}
	if f := o.Field("would_deny"); f != nil {
		e.WouldDeny = r.readCounts(f, s.Times, claimWouldDeny)
	}
	if f := o.Field("reason"); f != nil {
		r.readReason(s, f)
	}
	if f := o.Field("override"); f != nil {
		e.Override = r.readWord(f, "override", r.known.overrides)
	}
	r.readLast(s, o)
}

func (r *reader) readExpectWord(s *Step, n *parse.Node) {
	switch {
	case n.Kind == parse.KindText && n.Text == "allowed":
		all := s.Times
		s.Expect.Allowed = &all
	case n.Kind == parse.KindText && n.Text == "denied":
		s.Expect.Allowed = new(int)
	case n.Kind == parse.KindText && (r.known.rules[n.Text] != nil || r.known.limits[n.Text] != nil):
		r.Add(n, "expect must be allowed, denied, or an object", fmt.Sprintf(`write { denied: %s }, or { rule: %s }`, n.Text, n.Text))
	default:
		r.Add(n, "expect must be allowed, denied, or an object", `as in { denied: true, retry_after: "100ms" }`)
	}
}

// readAllowedAndDenied reads how many requests are allowed, and how many each rule denies.
func (r *reader) readAllowedAndDenied(s *Step, o *parse.Object) {
	e := &s.Expect
	allowed, denied := o.Field("allowed"), o.Field("denied")
	if allowed != nil {
		if n, ok := r.readNumber(allowed, "allowed", s.Times); ok {
			e.Allowed = &n
		}
	}
	switch {
	case denied == nil:
		r.inferAllowed(s, o)
	case denied.Kind == parse.KindText || denied.Kind == parse.KindObject:
		rest := s.Times
		if e.Allowed != nil {
			rest -= *e.Allowed
		}
		e.Denied = r.readCounts(denied, rest, claimDenies)
		if denied.Kind == parse.KindObject {
			rest = 0
			for _, c := range e.Denied {
				rest += c.Times
			}
		}
		r.setDenied(s, denied, rest)
	default:
		if n, ok := r.readNumber(denied, "denied", s.Times); ok {
			r.setDenied(s, denied, n)
		}
	}
}

func (r *reader) setDenied(s *Step, f *parse.Node, n int) {
	allowed := s.Times - n
	switch e := &s.Expect; {
	case e.Allowed == nil && allowed >= 0:
		e.Allowed = &allowed
	case allowed < 0 || *e.Allowed != allowed:
		r.AddAt(f, fmt.Sprintf("allowed and denied do not add up to the %d requests of times", s.Times), "one of them is enough")
	case n == 0 && f.Kind == parse.KindText:
		r.AddAt(f, "no request can be denied if all are allowed", "remove one of them")
	}
}

// inferAllowed derives the number of allowed requests from other expectations.
func (r *reader) inferAllowed(s *Step, o *parse.Object) {
	e := &s.Expect
	if e.Allowed != nil {
		return
	}
	denial, admission := o.Count("reason", "retry_after"), o.Count("wait")
	switch {
	case denial > 0 && admission > 0:
		r.AddAt(o.Field("wait"), "denied requests do not wait", "use retry_after")
	case denial > 0:
		e.Allowed = new(int)
	case admission > 0:
		all := s.Times
		e.Allowed = &all
	}
}

// readNumber reads a number of at most most requests, or true for all.
func (r *reader) readNumber(f *parse.Node, what string, most int) (int, bool) {
	n, err := strconv.Atoi(f.Text)
	switch {
	case f.Kind == parse.KindBool && f.Text == "true":
		return most, true
	case f.Kind == parse.KindBool:
		return 0, true
	case f.Kind != parse.KindNumber || err != nil || n < 0:
		r.Add(f, what+" must be true or a number of requests", "")
	case n > most:
		r.Add(f, fmt.Sprintf("%s must be at most the %d requests of times", what, most), "")
	default:
		return n, true
	}
	return 0, false
}

// readCounts reads the number of denied requests per rule. The value is one rule that denies all requests, a list
// of such rules, or an object with a number per rule.
func (r *reader) readCounts(f *parse.Node, all int, of claim) []Count {
	counts := []Count{}
	switch {
	case f.Kind == parse.KindObject && len(f.Fields) == 0:
		r.Add(f, "the object must name a rule", "")
	case f.Kind == parse.KindObject:
		for _, inner := range f.Fields {
			n, ok := r.readNumber(inner.Value, "the number of requests", all)
			if r.checkRule(inner.Value, inner.Name, of == claimDenies, of) && ok {
				counts = append(counts, Count{inner.Name, n})
			}
		}
	case f.Kind == parse.KindList && of == claimWouldDeny:
		list, _ := r.Items(f, "would_deny", false, policy.MaxMatches)
		for _, item := range list {
			if name, ok := r.readRuleName(item, false, of); ok {
				counts = append(counts, Count{name, all})
			}
		}
	default:
		if name, ok := r.readRuleName(f, of == claimDenies, of); ok {
			counts = append(counts, Count{name, all})
		}
	}
	return counts
}

func (r *reader) readApplies(f *parse.Node) []string {
	names := []string{}
	list := []*parse.Node{f}
	if f.Kind == parse.KindList {
		list, _ = r.Items(f, "applies", false, policy.MaxMatches)
	}
	for _, n := range list {
		name, ok := r.readRuleName(n, false, claimApplies)
		switch {
		case ok && slices.Contains(names, name):
			r.Add(n, "the rule is in the list already", "")
		case ok:
			names = append(names, name)
		}
	}
	return names
}

func (r *reader) readReason(s *Step, f *parse.Node) {
	text, ok := r.String(f, "reason", maxTestValueBytes)
	switch {
	case !ok:
	case text == "store_error":
		r.Add(f, "the store never fails in a test", "")
	case !slices.Contains(r.known.reasons, text) && !r.known.broken:
		hint := parse.Nearest(text, r.known.reasons)
		if hint == "" {
			hint = "valid values are " + parse.Enumerate(r.known.reasons, "and")
		}
		r.Add(f, "unknown reason for a denial", hint)
	case s.Expect.Allowed != nil && *s.Expect.Allowed == s.Times:
		r.AddAt(f, "reason requires a denial, but all requests are expected to be allowed", "")
	default:
		s.Expect.Reason = text
	}
}

func (r *reader) readLast(s *Step, o *parse.Object) {
	e := &s.Expect
	if f := o.Field("retry_after"); f != nil {
		if f.Kind == parse.KindText && f.Text == "never" {
			never := bucket.Never
			e.RetryAfter = &never
		} else {
			e.RetryAfter = r.readWait(f, "retry_after", " or never")
		}
		if e.Allowed != nil && *e.Allowed == s.Times {
			r.AddAt(f, "retry_after requires a denial, but all requests are expected to be allowed", "")
		}
	}
	if f := o.Field("wait"); f != nil {
		e.Wait = r.readWait(f, "wait", "")
		if e.Allowed != nil && *e.Allowed == 0 {
			r.AddAt(f, "denied requests do not wait", "use retry_after")
		}
	}
	if f := o.Field("remaining"); f != nil {
		e.Remaining = r.readAmounts(f, "remaining")
	}
	if f := o.Field("cost"); f != nil {
		e.Cost = r.readAmounts(f, "cost")
	}
	if f := o.Field("stage"); f != nil && f.Kind == parse.KindNumber {
		r.Add(f, "stage must be a string", fmt.Sprintf("write \"%s%%\"", f.Text))
	} else if f != nil {
		e.Stage = r.readWord(f, "stage", r.known.stages)
	}
}

func (r *reader) readWait(f *parse.Node, what, or string) *time.Duration {
	d, err := bucket.ParseDuration(f.Text)
	switch {
	case f.Kind != parse.KindText || err != nil:
		r.Add(f, what+" must be a duration"+or, `as in "100ms"`)
	case d%time.Microsecond != 0:
		r.Add(f, what+" must be whole microseconds", "")
	default:
		return &d
	}
	return nil
}

// readAmounts reads an amount of the deciding limit, or one per limit.
func (r *reader) readAmounts(f *parse.Node, what string) []Amount {
	if f.Kind != parse.KindObject {
		if t, ok := r.Amount(f, what); ok {
			return []Amount{{"", t}}
		}
		return nil
	}
	var amounts []Amount
	for _, inner := range f.Fields {
		t, ok := r.Amount(inner.Value, what)
		if r.checkRule(inner.Value, inner.Name, true, claimApplies) && ok {
			amounts = append(amounts, Amount{inner.Name, t})
		}
	}
	return amounts
}
