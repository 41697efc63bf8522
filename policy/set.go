// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"net/netip"
	"strings"
)

// A set is a set of values of one attribute, absence among them. It is what
// the check for rules that can never match computes with; requests are matched
// by [pattern].
//
// Present values are strings in byte order, and the set is a union of
// intervals: a value v is in it if the number of cuts ≤ v is odd. One string s
// is [s, s+"\x00"); a prefix p is [p, the first string after all those that
// begin with p). Addresses are strings of one length per family, so that a
// network is an interval, too.
type set struct {
	missing bool
	cuts    []string // strictly ascending
}

// everything is what a can be.
func everything(a Attribute) set {
	if a.Source != IP {
		return set{missing: true, cuts: []string{""}}
	}
	first4, first6 := netip.AddrFrom4([4]byte{}), netip.IPv6Unspecified()
	return set{missing: true, cuts: []string{addressText(first4), "5", addressText(first6), "7"}}
}

// addressText orders addresses: IPv4 before IPv6, each by number.
func addressText(a netip.Addr) string {
	if a.Is4() {
		return "4" + string(a.AsSlice())
	}
	return "6" + string(a.AsSlice())
}

func oneString(s string) set { return set{cuts: []string{s, s + "\x00"}} }

// allWithPrefix takes UTF-8 text: no byte of it is the greatest there is.
func allWithPrefix(p string) set {
	if p == "" {
		return set{cuts: []string{""}}
	}
	last := len(p) - 1
	return set{cuts: []string{p, p[:last] + string([]byte{p[last] + 1})}}
}

func network(p netip.Prefix) set {
	first := p.Masked().Addr()
	last := first.AsSlice()
	for i := p.Bits(); i < first.BitLen(); i++ {
		last[i/8] |= 0x80 >> (i % 8)
	}
	addr, _ := netip.AddrFromSlice(last)
	after := addr.Next()
	switch {
	case after.IsValid():
		return set{cuts: []string{addressText(first), addressText(after)}}
	case first.Is4():
		return set{cuts: []string{addressText(first), "5"}}
	}
	return set{cuts: []string{addressText(first), "7"}}
}

// combine returns the values for which op of membership in s and t holds. op
// of two falsehoods must be false.
func (s set) combine(t set, op func(inS, inT bool) bool) set {
	out := set{missing: op(s.missing, t.missing)}
	i, j, in := 0, 0, false
	for i < len(s.cuts) || j < len(t.cuts) {
		at := ""
		if j == len(t.cuts) || i < len(s.cuts) && s.cuts[i] < t.cuts[j] {
			at = s.cuts[i]
		} else {
			at = t.cuts[j]
		}
		if i < len(s.cuts) && s.cuts[i] == at {
			i++
		}
		if j < len(t.cuts) && t.cuts[j] == at {
			j++
		}
		if now := op(i%2 == 1, j%2 == 1); now != in {
			out.cuts, in = append(out.cuts, at), now
		}
	}
	return out
}

func (s set) or(t set) set  { return s.combine(t, func(a, b bool) bool { return a || b }) }
func (s set) and(t set) set { return s.combine(t, func(a, b bool) bool { return a && b }) }
func (s set) not(t set) set { return s.combine(t, func(a, b bool) bool { return a && !b }) }

// any reports whether op of membership in s and t holds for any value.
func (s set) any(t set, op func(inS, inT bool) bool) bool {
	if op(s.missing, t.missing) {
		return true
	}
	i, j := 0, 0
	for i < len(s.cuts) || j < len(t.cuts) {
		order := -1
		if i == len(s.cuts) {
			order = 1
		} else if j < len(t.cuts) {
			order = strings.Compare(s.cuts[i], t.cuts[j])
		}
		if order <= 0 {
			i++
		}
		if order >= 0 {
			j++
		}
		if op(i%2 == 1, j%2 == 1) {
			return true
		}
	}
	return false
}

func (s set) meets(t set) bool  { return s.any(t, func(a, b bool) bool { return a && b }) }
func (s set) within(t set) bool { return !s.any(t, func(a, b bool) bool { return a && !b }) }

func (s set) empty() bool { return !s.missing && len(s.cuts) == 0 }

func (s set) has(v string) bool {
	n := 0
	for n < len(s.cuts) && s.cuts[n] <= v {
		n++
	}
	return n%2 == 1
}

// sample returns a value in s for people to read. s must not be empty; ok is
// false where absence is all it has.
func (s set) sample(a Attribute) (value string, ok bool) {
	if len(s.cuts) == 0 {
		return "", false
	}
	if a.Source != IP {
		for _, nice := range []string{s.cuts[0], s.cuts[0] + "x", "x", "/", "GET"} {
			if nice != "" && s.has(nice) && !strings.ContainsRune(nice, 0) {
				return nice, true
			}
		}
		return s.cuts[0], true
	}
	for _, nice := range []string{"192.0.2.1", "2001:db8::1"} {
		if s.has(addressText(netip.MustParseAddr(nice))) {
			return nice, true
		}
	}
	addr, _ := netip.AddrFromSlice([]byte(s.cuts[0][1:]))
	return addr.String(), true
}
