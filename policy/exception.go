// SPDX-License-Identifier: Apache-2.0

package policy

import "github.com/metehq/mete/bucket"

// An exception is a compiled override.
type exception struct {
	*Override
	rank    int    // of its action
	path    string // JSON Pointer in its file
	expires bucket.Instant
	limits  []Limit // if the action has a limit

	alternatives [][]clause // all clauses of one of them must hold, if there are any
}

func (e *exception) isActive(s *scratch) bool { return s.now < e.expires }

type exceptions struct {
	all    []Override
	inFile []exception            // of the file, in its order
	whole  exceptionList          // exceptions from all rules
	rules  map[int]*ruleException // by number of the rule
}

// An exceptionList finds the exceptions that match a request, in order.
type exceptionList struct {
	list  []exception
	index *branch
}

type ruleException struct {
	exceptionList
	keys map[string][]*exception // by the components of a bucket's key
}

// apply applies the exceptions from all rules. It reports whether the rules still decide.
func (x *exceptions) apply(m *Matcher, s *scratch, v *Verdict) bool {
	var block, allow *exception
	s.found = x.whole.index.find(s.found[:0], m, s)
	for _, i := range s.found {
		e := &x.whole.list[i]
		if !e.isActive(s) || !m.holdAny(s, e.alternatives) {
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

// find returns the exception from the i'th rule for a request with these key components, or nil. A block wins over
// an allow, and an allow over a limit.
func (x *exceptions) find(m *Matcher, s *scratch, i int, key []byte) *exception {
	r := x.rules[i]
	if r == nil {
		return nil
	}
	var first *exception
	better := func(e *exception) {
		if e.isActive(s) && !(s.shadow && e.Action == ActionBlock) && (first == nil || e.rank < first.rank) && m.holdAny(s, e.alternatives) {
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

func (x *exceptions) finish(attributes []Attribute) {
	x.whole.finish(attributes)
	for _, r := range x.rules {
		r.finish(attributes)
	}
}

func (l *exceptionList) finish(attributes []Attribute) {
	var items []item
	for i := range l.list {
		items = appendItems(items, int32(i), l.list[i].alternatives, nil)
	}
	l.index = newIndex(attributes, items)
}
