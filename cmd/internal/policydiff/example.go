// SPDX-License-Identifier: Apache-2.0

package policydiff

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/metehq/mete/internal/parse"
	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/policy/diff"
)

// An example is a request that the two policies decide differently, with both decisions.
type example struct {
	Request map[string]string `json:"request"`
	Old     decision          `json:"old"`
	New     decision          `json:"new"`
	Text    string            `json:"text"`
	lines   []string          // explanation
}

type decision struct {
	BlockedBy string  `json:"blocked_by,omitempty"` // an override
	AllowedBy string  `json:"allowed_by,omitempty"` // an override
	DeniedBy  string  `json:"denied_by,omitempty"`  // a rule whose key the request lacks
	Limits    []limit `json:"limits"`
}

// A limit is a limit that applies to the request.
type limit struct {
	Limit  string `json:"limit"`
	Words  string `json:"words"`
	Shadow bool   `json:"shadow,omitempty"`
	Cost   string `json:"cost"`
	each   string
	rule   string
}

// hidden replaces values that may be secrets.
const hidden = "…"

// newExample describes an example. For policies that do not read the method, the request is a GET.
func (p *explainer) newExample(d diff.Difference) *example {
	e := d.Example
	x := &example{Request: map[string]string{}, Old: newDecision(e.Old), New: newDecision(e.New)}
	for name, value := range e.Request {
		if a, err := policy.ParseAttribute(name); err == nil && a.IsSecret() && !strings.HasPrefix(value, "example") {
			value = hidden
		}
		x.Request[name] = value
	}
	if x.Request["path"] != "" && !p.old.Uses(policy.SourceMethod) && !p.new.Uses(policy.SourceMethod) {
		x.Request["method"] = "GET"
	}
	// Limits of unrelated rules in both policies are not part of the difference.
	full := func(l limit) bool {
		return l.rule == d.Rule || l.rule == d.OldName || !x.Old.has(l.Limit) || !x.New.has(l.Limit)
	}
	was, is := x.Old.text(full), x.New.text(full)
	x.Text = requestText(x.Request)
	if was == is {
		x.lines = []string{x.Text, "is " + is + ", as before"}
	} else {
		x.lines = []string{x.Text, "was " + was, "is now " + is}
	}
	x.Text = strings.Join(append([]string{x.Text + ": " + x.lines[1]}, x.lines[2:]...), ", ")
	return x
}

func newDecision(d diff.Decision) decision {
	x := decision{Limits: []limit{}}
	switch {
	case d.Block != nil:
		x.BlockedBy = d.Block.ID
	case d.Allow != nil:
		x.AllowedBy = d.Allow.ID
	case d.Missing != nil:
		x.DeniedBy = d.Missing.Name
	case d.TooLarge != nil:
		x.DeniedBy = d.TooLarge.Name
	default:
		for _, m := range d.Matches {
			x.Limits = append(x.Limits, limit{Limit: m.Limit.Name, Words: limitText(m.Limit), Shadow: m.Shadow, Cost: m.Cost.String(), each: eachText(m.Rule), rule: m.Rule.Name})
		}
	}
	return x
}

func (d *decision) has(name string) bool {
	return slices.ContainsFunc(d.Limits, func(l limit) bool { return l.Limit == name })
}

// text describes a decision. It describes limits for which full returns true and lists only the names of the others.
func (d *decision) text(full func(limit) bool) string {
	switch {
	case d.BlockedBy != "":
		return "blocked by override " + d.BlockedBy
	case d.AllowedBy != "":
		return "allowed by override " + d.AllowedBy
	case d.DeniedBy != "":
		return "denied by " + d.DeniedBy + ", because it lacks an attribute of the key"
	case len(d.Limits) == 0:
		return "not limited"
	}
	var parts []string
	for _, l := range d.Limits {
		s := l.Limit
		if full(l) {
			s += fmt.Sprintf(" (%s%s)", l.Words, l.each)
		}
		if l.Cost != "1" {
			s += " at a cost of " + l.Cost
		}
		if l.Shadow {
			s += " in shadow"
		}
		parts = append(parts, s)
	}
	return "limited by " + parse.Enumerate(parts, "and")
}

// requestText describes a request, such as "GET /login from 192.0.2.1 with header:x-plan=free".
func requestText(request map[string]string) string {
	rest := maps.Clone(request)
	take := func(name string) string {
		value := rest[name]
		delete(rest, name)
		return value
	}
	method, path, host, address := take("method"), take("path"), take("host"), take("ip:address")
	s := strings.TrimSpace(method + " " + path)
	switch {
	case s == "":
		s = "a request"
	case method == "":
		s = "a request for " + path
	case path == "":
		s = "a " + method + " request"
	}
	if host != "" {
		s += " to " + host
	}
	if address != "" {
		s += " from " + address
	}
	var with []string
	for _, name := range slices.Sorted(maps.Keys(rest)) {
		with = append(with, name+"="+rest[name])
	}
	if len(with) > 0 {
		s += " with " + strings.Join(with, " ")
	}
	return s
}
