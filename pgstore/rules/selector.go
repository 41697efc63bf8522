// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/metehq/mete/policy"
)

// A selector says which requests a policy is about. Rows have none: each has it as
// clauses of its own match.

// A filter is the values that requests must have, by attribute: a prefix ends in a
// star.
type filter map[string][]string

// selector reads the selector of a policy.
func (p *filePolicy) selector() (filter, error) {
	o, err := parseObject(p.spec["selector"])
	if err != nil {
		return nil, err
	}
	s := filter{}
	exact, _ := listed(o["pathExact"], policy.SourcePath)
	prefixes, _ := listed(o["pathPrefix"], policy.SourcePath)
	s["path"] = exact
	for _, p := range prefixes {
		if !strings.HasSuffix(p, "/") { // it ends where a segment does
			s["path"] = append(s["path"], p)
		}
	}
	for _, p := range prefixes {
		s["path"] = append(s["path"], strings.TrimSuffix(p, "/")+"/*")
	}
	if values, ok := listed(o["methods"], policy.SourceMethod); ok {
		s["method"] = values
	}
	if values, ok := listed(o["hosts"], policy.SourceHost); ok {
		s["host"] = values
	}
	return s, nil
}

// narrow writes a filter into the match of the rule at path.
func (s filter) narrow(rule object, path string) (found policy.Errors) {
	if len(s) == 0 {
		return nil
	}
	match, err := parseObject(rule["match"])
	if err != nil {
		return nil // cannot be: it has been compiled
	}
	for _, attribute := range []string{"path", "method", "host"} {
		values := s[attribute]
		if len(values) == 0 {
			continue
		}
		name := attribute
		for field := range match {
			if spelled, err := policy.Normalize(field); err == nil && spelled == attribute {
				name = field
			}
		}
		clause, ok := narrowed(match[name], values, attribute)
		if !ok {
			found = append(found, policy.Error{Path: pointer(path, "match", name),
				Reason: fmt.Sprintf("what the match on %s leaves of the policy's selector is no list of values, and a row has one clause for it", attribute),
				Hint:   "write the match as a list of what it is about"})
			continue
		}
		if values, _ := listed(clause, policy.SourceCustom); len(values) > policy.MaxMatchValues {
			found = append(found, policy.Error{Path: pointer(path, "match", name),
				Reason: fmt.Sprintf("with the policy's selector the clause on %s has %d values, the most is %d", attribute, len(values), policy.MaxMatchValues),
				Hint:   "make several rules of it"})
		}
		match[name] = clause
	}
	if len(match) > policy.MaxMatchClauses {
		found = append(found, policy.Error{Path: pointer(path, "match"),
			Reason: fmt.Sprintf("with the policy's selector the match has %d clauses, the most is %d", len(match), policy.MaxMatchClauses),
			Hint:   "remove some: a row has the selector in its match"})
	}
	rule.put("match", match)
	return found
}

// narrowed returns the clause that holds where the given one does, which may be none,
// and the value is as in values. It is false where no list can say that. A clause that
// lets nothing else in stays as it is.
func narrowed(clause json.RawMessage, values []string, attribute string) (json.RawMessage, bool) {
	a, err := policy.ParseAttribute(attribute)
	if err != nil {
		return nil, false
	}
	var left []string
	switch {
	case len(clause) == 0:
		left = values
	case clause[0] == '{':
		var not struct {
			Not json.RawMessage `json:"not"`
		}
		if json.Unmarshal(clause, &not) != nil {
			return nil, false
		}
		without, ok := listed(not.Not, a.Source)
		if !ok {
			return nil, false
		}
		for _, v := range values {
			switch {
			case slices.ContainsFunc(without, func(w string) bool { return covers(w, v) }):
			case slices.ContainsFunc(without, func(w string) bool { return overlap(w, v) }):
				return nil, false // a part of what begins so
			default:
				left = append(left, v)
			}
		}
	default:
		own, ok := listed(clause, a.Source)
		if !ok || within(own, values) {
			return clause, ok
		}
		left = common(own, values)
	}
	return clauseOf(left), len(left) > 0
}

// clauseOf returns the clause that lists the values, each once, and prefixes last.
func clauseOf(values []string) json.RawMessage {
	var exact, prefixes []string
	seen := map[string]bool{}
	for _, v := range values {
		switch {
		case seen[v]:
		case strings.HasSuffix(v, "*"):
			prefixes = append(prefixes, v)
		default:
			exact = append(exact, v)
		}
		seen[v] = true
	}
	if exact = append(exact, prefixes...); len(exact) == 1 {
		return marshal(exact[0])
	}
	return marshal(exact)
}

// covers reports whether all that is as y says is as x says.
func covers(x, y string) bool {
	prefix, star := strings.CutSuffix(x, "*")
	return x == y || star && strings.HasPrefix(strings.TrimSuffix(y, "*"), prefix)
}

// within reports whether each of the values is as one of the others says.
func within(values, others []string) bool {
	return !slices.ContainsFunc(values, func(v string) bool {
		return !slices.ContainsFunc(others, func(o string) bool { return covers(o, v) })
	})
}

// common returns what is as both lists say.
func common(a, b []string) (both []string) {
	for _, x := range a {
		for _, y := range b {
			switch {
			case covers(y, x):
				both = append(both, x)
			case covers(x, y):
				both = append(both, y)
			}
		}
	}
	return both
}
