// SPDX-License-Identifier: Apache-2.0

package history_test

import (
	"fmt"
	"hash/maphash"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// A state of the model maps names to values. It is immutable: set returns a copy. Equal states have equal texts.
type state struct {
	things []thing // in the order of their names
	hash   uint64  // of all texts, in any order
}

type thing struct {
	name, text string
	value      any
}

// A row has an account per version of the limit, most recently charged first.
type row []account

// An account misses between lo and hi thousandths. The two differ after a failover, and after a cancellation of a
// bucket in debt. The next snapshot shows the amount.
type account struct {
	version int
	lo, hi  int64
	// A cancellation may have left a fraction of a thousandth.
	fraction bool
	// The store may have dropped the account. The next take then makes a new one.
	dropped bool
}

// A remembered is the answer of the store to an ID. Its snaps are nil if the model does not know them.
type remembered struct {
	at    int64
	snaps []snap
	maybe bool // the store may have lost it

	kept, undone bool // of a take of several slots
}

// A record is a hold.
type record struct {
	parts   []part
	slots   []charge
	snaps   []snap
	expires int64
	until   int64 // the store then removes the hold
	refund  bool  // at the expiry
	status  string
	actual  int64
}

type part struct {
	charge
	over   bool // it returns nothing: the bucket was reset, its account was dropped, or the hold has expired
	unsure bool // whether its account was dropped
}

func (s state) find(name string) (int, bool) {
	return slices.BinarySearchFunc(s.things, name, func(t thing, n string) int { return strings.Compare(t.name, n) })
}

func (s state) get(name string) any {
	if i, ok := s.find(name); ok {
		return s.things[i].value
	}
	return nil
}

func (s state) set(name string, value any) state {
	t := thing{name, text(name, value), value}
	i, ok := s.find(name)
	things := append(append(make([]thing, 0, len(s.things)+1), s.things[:i]...), t)
	if ok {
		s.hash ^= hashOf(s.things[i].text)
		i++
	}
	return state{append(things, s.things[i:]...), s.hash ^ hashOf(t.text)}
}

// text returns the name and the value as text. It is fast for values that change often.
func text(name string, value any) string {
	b := append(make([]byte, 0, 64), name...)
	number := func(n int64) { b = strconv.AppendInt(append(b, ' '), n, 10) }
	switch v := value.(type) {
	case row:
		for _, a := range v {
			number(int64(a.version))
			number(a.lo)
			number(a.hi)
			b = strconv.AppendBool(strconv.AppendBool(b, a.fraction), a.dropped)
		}
	case remembered:
		number(v.at)
		for _, s := range v.snaps {
			number(s.Cost)
			number(s.Missing)
		}
		b = fmt.Append(b, v.maybe, v.kept, v.undone)
	default:
		b = fmt.Append(b, " ", v)
	}
	return string(b)
}

var hashSeed = maphash.MakeSeed()

func hashOf(text string) uint64 {
	return maphash.String(hashSeed, text)
}

func (s state) equal(o state) bool {
	return s.hash == o.hash && slices.EqualFunc(s.things, o.things, func(a, b thing) bool { return a.text == b.text })
}

func (s state) String() string {
	var texts []string
	for _, t := range s.things {
		texts = append(texts, t.text)
	}
	return strings.Join(texts, "; ")
}

func (s state) row(key string) row {
	r, _ := s.get("row " + key).(row)
	return r
}

func (s state) now() int64 {
	n, _ := s.get("now").(int64)
	return n
}

// most returns the largest amount that a bucket has missed so far.
func (s state) most(key string) int64 {
	n, _ := s.get("most " + key).(int64)
	return n
}

// slots returns the unexpired slots of a key and their ends. The caller may change the map.
func (s state) slots(key string) map[string]int64 {
	all, _ := s.get("slots " + key).(map[string]int64)
	held := maps.Clone(all)
	if held == nil {
		held = map[string]int64{}
	}
	maps.DeleteFunc(held, func(_ string, end int64) bool { return end <= s.now() })
	return held
}

func (r row) find(version int) int {
	return slices.IndexFunc(r, func(a account) bool { return a.version == version })
}

// narrow replaces the range of an account, if there is one, by the amount that a snapshot shows.
func (s state) narrow(key string, a account) state {
	r := s.row(key)
	i := r.find(a.version)
	if i < 0 || r[i].dropped {
		return s
	}
	r = slices.Clone(r)
	r[i] = a
	return s.set("row "+key, r)
}

// returned returns the row after amount came back to the selected accounts. An account for which partly is true gets
// back between nothing and the amount.
func (r row) returned(amount int64, which, partly func(account) bool) row {
	next := slices.Clone(r)
	for i := range next {
		if a := &next[i]; which(*a) {
			if !partly(*a) {
				a.fraction = a.fraction && a.hi+near > amount
				a.hi = max(a.hi-amount, 0)
			}
			a.lo = max(a.lo-amount, 0)
		}
	}
	return next
}

// endParts marks the selected parts of all holds. They return nothing any more, or perhaps nothing.
func (s state) endParts(perhaps bool, which func(*part) bool) state {
	for _, t := range s.things {
		h, ok := t.value.(record)
		if !ok || !slices.ContainsFunc(h.parts, func(p part) bool { return which(&p) }) {
			continue
		}
		h.parts = slices.Clone(h.parts)
		for i := range h.parts {
			if p := &h.parts[i]; which(p) {
				p.over, p.unsure = p.over || !perhaps, perhaps
			}
		}
		s = s.set(t.name, h)
	}
	return s
}
