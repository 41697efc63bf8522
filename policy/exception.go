// SPDX-License-Identifier: Apache-2.0

package policy

import "github.com/metehq/mete/bucket"

// An exception is a compiled override.
type exception struct {
	*Override
	rank    int    // of its action
	path    string // JSON Pointer to it, in its file
	expires bucket.Instant
	clauses []clause
	limits  []Limit // of an action that has a limit
}

func (e *exception) inForce(s *scratch) bool { return s.now < e.expires }

// exceptions are all overrides of a matcher.
type exceptions struct {
	all   []Override
	read  []exception            // of the file, in its order
	whole exceptionList          // that are about a request, whatever the rules
	rules map[int]*ruleException // by the rule's number
}

// An exceptionList finds the exceptions whose clauses hold, the first ones first.
type exceptionList struct {
	list  []exception
	index *branch
}

// ruleException are the exceptions from one rule.
type ruleException struct {
	exceptionList
	keys map[string][]*exception // by the components of a bucket's key
}

// apply applies what is about the whole request. It reports whether the rules are
// to be considered.
func (x *exceptions) apply(m *Matcher, s *scratch, v *Verdict) bool {
	var block, allow *exception
	s.found = x.whole.index.find(s.found[:0], m, s)
	for _, i := range s.found {
		e := &x.whole.list[i]
		if !e.inForce(s) || !m.hold(s, e.clauses) {
			continue
		}
		switch {
		case e.Action == ActionBreakGlass:
			v.Allow = e.Override
			return false
		case e.Action == ActionShadow:
			s.shadow = true
		case e.Action == ActionBlock && block == nil:
			block = e
		case e.Action == ActionAllow && allow == nil:
			allow = e
		}
	}
	switch {
	case block != nil && !s.shadow:
		v.Block = block.Override
		return false
	case allow != nil:
		v.Allow = allow.Override
		return false
	}
	return true
}

// of returns the exception from the i'th rule for a request with a key of these
// components, nil if there is none. One that blocks goes before one that allows,
// and that before another limit.
func (x *exceptions) of(m *Matcher, s *scratch, i int, key []byte) *exception {
	r := x.rules[i]
	if r == nil {
		return nil
	}
	var first *exception
	better := func(e *exception) {
		if e.inForce(s) && !(s.shadow && e.Action == ActionBlock) && (first == nil || e.rank < first.rank) && m.hold(s, e.clauses) {
			first = e
		}
	}
	for _, e := range r.keys[string(key)] {
		better(e)
	}
	s.also = r.index.find(s.also[:0], m, s)
	for _, at := range s.also {
		better(&r.list[at])
	}
	return first
}

// finish makes the indexes.
func (x *exceptions) finish(attributes []Attribute) {
	x.whole.finish(attributes)
	for _, r := range x.rules {
		r.finish(attributes)
	}
}

func (l *exceptionList) finish(attributes []Attribute) {
	items := make([]item, len(l.list))
	for i := range l.list {
		items[i] = item{int32(i), l.list[i].clauses}
	}
	l.index = newIndex(attributes, items)
}
