// SPDX-License-Identifier: Apache-2.0

package policytest

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/metehq/mete"
)

type decided struct {
	n int
	d mete.Decision
}

type outcome struct {
	step          *Step
	allowed       int
	denied        map[string]int // by rule, and by limit if its name differs
	wouldDeny     map[string]int
	shadowDenials int // requests that any rule in shadow would have denied

	// The first request of each kind, or nil, and the last request.
	admission, denial, shadow       *decided
	rule, reason, applies, override *decided // the first unexpected one
	last                            decided
}

func (o *outcome) add(n int, d *mete.Decision) {
	first := func(at **decided) {
		if *at == nil {
			*at = &decided{n, *d}
		}
	}
	if o.last = (decided{n, *d}); d.Allowed {
		o.allowed++
		first(&o.admission)
	} else {
		first(&o.denial)
		countNames(&o.denied, deciders(d))
	}
	e := &o.step.Expect
	if names := wouldDeny(d); len(names) > 0 {
		o.shadowDenials++
		countNames(&o.wouldDeny, names)
		first(&o.shadow)
	}
	if e.Rule != "" && !slices.Contains(deciders(d), e.Rule) {
		first(&o.rule)
	}
	if e.Reason != "" && !d.Allowed && d.Reason != e.Reason {
		first(&o.reason)
	}
	if e.Applies != nil && !sameNames(appliedRules(d), e.Applies) {
		first(&o.applies)
	}
	if e.Override != nil && !isChangedBy(d, *e.Override) {
		first(&o.override)
	}
}

func countNames(counts *map[string]int, names []string) {
	if *counts == nil {
		*counts = map[string]int{}
	}
	for _, name := range names {
		(*counts)[name]++
	}
}

func (o *outcome) judge() []Failure {
	e := &o.step.Expect
	if e.Path == "" {
		return nil
	}
	found := o.judgeAllowed(nil)
	each := func(bad *decided, field, want string, got func(*mete.Decision) string) {
		if bad != nil {
			found = append(found, o.newFailure(bad, e.Place(field), want, got(&bad.d)))
		}
	}
	each(o.rule, "rule", "rule "+e.Rule, describe)
	each(o.reason, "reason", "the reason "+e.Reason, describe)
	each(o.applies, "applies", "rules that apply: "+listNames(e.Applies), func(d *mete.Decision) string { return listNames(appliedRules(d)) })
	if e.Override != nil {
		each(o.override, "override", "override "+orNone(*e.Override), func(d *mete.Decision) string { return listNames(overrideIDs(d)) })
	}
	found = o.judgeShadow(found)
	return o.judgeLast(found)
}

func (o *outcome) judgeAllowed(found []Failure) []Failure {
	e := &o.step.Expect
	if e.Allowed != nil && o.allowed != *e.Allowed {
		bad := &o.last
		switch {
		case *e.Allowed == o.step.Times:
			bad = o.denial
		case *e.Allowed == 0:
			bad = o.admission
		}
		want, got := o.describeAllowed(*e.Allowed), o.summarize()
		if o.step.Times == 1 {
			want, got = "denied", describe(&bad.d)
			if *e.Allowed == 1 {
				want = "allowed"
			} else if len(e.Denied) == 1 {
				want = "denied by " + e.Denied[0].Name
			}
		}
		return append(found, o.newFailure(bad, e.Place("allowed", "denied", "wait", "retry_after", "reason"), want, got))
	}
	for _, c := range e.Denied {
		if o.denied[c.Name] == c.Times {
			continue
		}
		if o.step.Times == 1 {
			return append(found, o.newFailure(&o.last, e.Place("denied"), "denied by "+c.Name, describe(&o.last.d)))
		}
		found = append(found, o.newFailure(o.denial, e.Place("denied"), fmt.Sprintf("%d denied by %s", c.Times, c.Name), o.summarize()))
	}
	return found
}

func (o *outcome) summarize() string {
	by := []string{o.describeAllowed(o.allowed)}
	for _, name := range slices.Sorted(maps.Keys(o.denied)) {
		by = append(by, fmt.Sprintf("%d denied by %s", o.denied[name], name))
	}
	return strings.Join(by, ", ")
}

func (o *outcome) describeAllowed(allowed int) string {
	switch allowed {
	case o.step.Times:
		return fmt.Sprintf("all %d allowed", allowed)
	case 0:
		return fmt.Sprintf("none of %d allowed", o.step.Times)
	}
	return fmt.Sprintf("%d of %d allowed", allowed, o.step.Times)
}

func (o *outcome) judgeShadow(found []Failure) []Failure {
	e := &o.step.Expect
	if e.WouldDeny != nil && len(e.WouldDeny) == 0 && o.shadowDenials > 0 {
		found = append(found, o.newFailure(o.shadow, e.Place("would_deny"), "no request that a rule in shadow would deny", "a request that "+listNames(wouldDeny(&o.shadow.d))+" would deny"))
	}
	for _, c := range e.WouldDeny {
		if got := o.wouldDeny[c.Name]; got != c.Times {
			bad := &o.last
			if got > c.Times && o.shadow != nil {
				bad = o.shadow
			}
			found = append(found, o.newFailure(bad, e.Place("would_deny"),
				fmt.Sprintf("%d of %d requests that %s in shadow would deny", c.Times, o.step.Times, c.Name), fmt.Sprint(got)))
		}
	}
	return found
}

func (o *outcome) newFailure(bad *decided, path, want, got string) Failure {
	if bad == nil {
		bad = &o.last
	}
	return Failure{Path: path, Request: bad.n + 1, Times: o.step.Times, Want: want, Got: got, step: o.step, decision: bad.d}
}
