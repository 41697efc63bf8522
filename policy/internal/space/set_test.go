// SPDX-License-Identifier: Apache-2.0

package space_test

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/metehq/mete/internal/testseed"
	"github.com/metehq/mete/policy/internal/space"
)

// A world has all short texts of a few bytes, and random sets of them with their members.
type world struct {
	*rand.Rand
	texts []string
}

type members struct {
	set space.Set
	has func(string) bool
}

func newWorld(seed uint64) *world {
	w := &world{Rand: rand.New(testseed.PCG(seed, 0)), texts: []string{""}}
	for at := 0; len(w.texts[at]) < 6; at++ {
		for _, c := range []string{"/", "a", "b", "."} {
			w.texts = append(w.texts, w.texts[at]+c)
		}
	}
	return w
}

func (w *world) text(n int) (s string) {
	for range w.IntN(n) {
		s += string("/ab."[w.IntN(4)])
	}
	return s
}

// primitive returns the set of one pattern.
func (w *world) primitive() members {
	switch w.IntN(5) {
	case 0:
		v := w.text(5)
		return members{space.One(v), func(s string) bool { return s == v }}
	case 1:
		v := w.text(4)
		return members{space.WithPrefix(v), func(s string) bool { return strings.HasPrefix(s, v) }}
	case 2:
		v := "." + w.text(3)
		return members{space.WithShape(space.NewSuffix(v)), func(s string) bool { return len(s) > len(v) && strings.HasSuffix(s, v) }}
	}
	return w.template()
}

// template returns a template of up to three segments.
func (w *world) template() members {
	var b space.TemplateBuilder
	var parts []string // "*p" is a segment with a prefix, "..." is the rest
	for range 1 + w.IntN(3) {
		b.Literal("/")
		switch w.IntN(3) {
		case 0:
			v := "ab."[w.IntN(3):][:1]
			b.Literal(v)
			parts = append(parts, v)
			continue
		case 1:
			p := []string{"", "", "a"}[w.IntN(3)]
			b.Segment(p)
			parts = append(parts, "*"+p)
			continue
		}
		if w.IntN(2) == 0 {
			b.Rest()
			parts = append(parts, "...")
		} else {
			parts = append(parts, "")
		}
		break
	}
	return members{space.WithShape(b.Shape()), func(s string) bool { return hasParts(s, parts) }}
}

func hasParts(s string, parts []string) bool {
	for i, p := range parts {
		rest, ok := strings.CutPrefix(s, "/")
		if !ok {
			return false
		}
		if p == "..." {
			return true
		}
		at := strings.IndexByte(rest, '/')
		if at < 0 || i == len(parts)-1 {
			at = len(rest)
		}
		segment := rest[:at]
		if strings.Contains(segment, "/") {
			return false
		}
		if prefix, any := strings.CutPrefix(p, "*"); any && (segment == "" || !strings.HasPrefix(segment, prefix)) || !any && segment != p {
			return false
		}
		s = rest[at:]
	}
	return s == ""
}

func (w *world) random(depth int) members {
	if depth == 0 {
		return w.primitive()
	}
	a, b := w.random(depth-1), w.random(depth-1)
	switch w.IntN(4) {
	case 0:
		return members{a.set.And(b.set), func(s string) bool { return a.has(s) && b.has(s) }}
	case 1:
		return members{a.set.Not(b.set), func(s string) bool { return a.has(s) && !b.has(s) }}
	case 2:
		return members{space.Everything(false).Not(a.set), func(s string) bool { return !a.has(s) }}
	}
	return members{a.set.Or(b.set), func(s string) bool { return a.has(s) || b.has(s) }}
}

// Sets have the members that the operations define, and samples are members.
func TestSet_Random(t *testing.T) {
	const seed = 7
	w := newWorld(seed)
	empty, within := 0, 0
	for round := range 1500 {
		a, b := w.random(w.IntN(4)), w.random(w.IntN(3))
		some, meets, inside := false, false, true
		for _, s := range w.texts {
			inA, inB := a.has(s), b.has(s)
			if got := a.set.Has(s); got != inA {
				t.Fatalf("seed %d, round %d: has %q: %t, want %t", seed, round, s, got, inA)
			}
			some, meets, inside = some || inA, meets || inA && inB, inside && (!inA || inB)
		}
		switch {
		case some && a.set.Empty():
			t.Fatalf("seed %d, round %d: the set is empty", seed, round)
		case meets && !a.set.Meets(b.set):
			t.Fatalf("seed %d, round %d: the sets do not meet", seed, round)
		case !inside && a.set.Within(b.set):
			t.Fatalf("seed %d, round %d: the set is within the other", seed, round)
		}
		// Without a member among the texts, there may be a longer one.
		if value, ok := a.set.Sample(false); ok != (!a.set.Empty() && !a.set.Within(space.Absent())) || ok && !a.has(value) {
			t.Fatalf("seed %d, round %d: the sample %q, %t is no member", seed, round, value, ok)
		}
		if a.set.Empty() {
			empty++
		}
		if a.set.Within(b.set) {
			within++
			if both := a.set.Not(b.set); !both.Empty() {
				t.Fatalf("seed %d, round %d: the set is within the other, and has more", seed, round)
			}
		} else if value, ok := a.set.Not(b.set).Sample(false); ok && (!a.has(value) || b.has(value)) {
			t.Fatalf("seed %d, round %d: %q is not in the first set only", seed, round, value)
		}
	}
	if empty < 50 || within < 50 {
		t.Errorf("%d empty sets, %d sets within the other: the test says little", empty, within)
	}
}

// A path without empty and dot segments is preferred.
func TestSet_SampleOfPaths(t *testing.T) {
	var one, two space.TemplateBuilder
	one.Literal("/users/")
	one.Segment("")
	two.Literal("/users/")
	two.Segment("x")
	set := space.WithShape(one.Shape()).Not(space.WithShape(two.Shape()))
	if value, ok := set.Sample(false); !ok || value != "/users/a" {
		t.Errorf("sample %q, %t, want /users/a", value, ok)
	}
}
