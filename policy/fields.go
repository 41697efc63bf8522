// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"slices"
	"strings"

	"github.com/metehq/mete/internal/spell"
)

// A schema is what an object of the language may contain.
type schema struct {
	what   string            // for messages: "a rule"
	fields []string          // known and read
	later  map[string]string // known and refused: what for, with why

	inside       string // a field of the object that is an object itself,
	insideFields []string

	others  *others            // whose fields these are not, where that is to be told
	foreign map[string]foreign // names that others have for what is here
	example string             // of an object, where it is not plain how it looks
}

// others are the algorithms that an object does not speak of.
type others struct {
	than    string // the algorithm it speaks of
	owners  map[string][]string
	instead map[string][]string // as in algorithm
}

// strange reports the field f if it is another algorithm's.
func (s *others) strange(o *object, f field) bool {
	if s == nil || len(s.owners[f.name]) == 0 {
		return false
	}
	hint := ""
	if f.name == "leased" {
		hint = "remove it: nothing can be taken from it in advance"
	}
	if instead := s.instead[f.name]; instead != nil {
		hint = "say " + strings.Join(instead, " and ")
		o.meant = append(o.meant, instead...)
	}
	o.report.absent(f.value, fmt.Sprintf("field %q is of %s, not of %s", f.name, enumerate(s.owners[f.name], "and"), s.than), hint)
	return true
}

// enumerate joins words: "a, b or c".
func enumerate(words []string, last string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	end := len(words) - 1
	return strings.Join(words[:end], ", ") + " " + last + " " + words[end]
}

// An object reads the fields of a node by a schema.
type object struct {
	*node
	report *report
	meant  []string // known fields that a misspelt one probably stands for
}

// object checks that n is an object and has none but the schema's fields. It
// is nil where n is no object.
func (r *report) object(n *node, s schema) *object {
	if n.kind != isObject {
		hint := ""
		if s.example != "" {
			hint = "as in " + s.example
		}
		r.add(n, s.what+" must be an object", hint)
		return nil
	}
	o := &object{node: n, report: r}
	for _, f := range n.fields {
		if slices.Contains(s.fields, f.name) {
			continue
		}
		if why, ok := s.later[f.name]; ok {
			r.absent(f.value, fmt.Sprintf("field %q is not supported yet%s", f.name, why), "remove it")
			continue
		}
		if s.others.strange(o, f) {
			continue
		}
		name, _ := cut(f.name)
		reason, hint := fmt.Sprintf("unknown field %q in %s", name, s.what), "known are "+strings.Join(s.fields, ", ")
		if len(s.fields) == 1 {
			hint = fmt.Sprintf("the only one is %q", s.fields[0])
		}
		if known, ok := s.foreign[f.name]; ok {
			hint = known.hint
			o.meant = append(o.meant, known.means...)
		} else if slices.Contains(s.insideFields, f.name) {
			hint = "it belongs into " + s.inside
			o.meant = append(o.meant, s.inside)
		} else if near := spell.Nearest(f.name, s.fields); near != "" {
			hint = fmt.Sprintf("did you mean %q?", near)
			o.meant = append(o.meant, near)
		}
		r.absent(f.value, reason, hint)
	}
	return o
}

// need returns a field that must be there and reports its absence, unless a
// misspelt field explains it.
func (o *object) need(name, hint string) *node {
	n := o.field(name)
	if n == nil && !o.meantAny(name) {
		o.report.absent(o.node, fmt.Sprintf("field %q is missing", name), hint)
	}
	return n
}

// count returns how many of the fields o has.
func (o *object) count(names ...string) (n int) {
	for _, name := range names {
		if o.field(name) != nil {
			n++
		}
	}
	return n
}

// meantAny reports whether a misspelt field probably stands for one of names.
func (o *object) meantAny(names ...string) bool {
	return slices.ContainsFunc(names, func(name string) bool { return slices.Contains(o.meant, name) })
}

// list returns the elements of n, at most most and at least one where some is
// set. It is false where n is not such a list.
func (r *report) list(n *node, what string, some bool, most int) ([]*node, bool) {
	switch {
	case n.kind != isList:
		hint := ""
		if n.kind == isText || n.kind == isNumber {
			hint = fmt.Sprintf("write [%s]", shown(n))
		}
		r.add(n, what+" must be a list", hint)
	case some && len(n.list) == 0:
		r.add(n, what+" must not be empty", "")
	case len(n.list) > most:
		r.add(n, fmt.Sprintf("%s must have at most %d entries", what, most), "")
	default:
		return n.list, true
	}
	return nil, false
}

// text returns the string n, of at most most bytes.
func (r *report) text(n *node, what string, most int) (string, bool) {
	switch {
	case n.kind != isText:
		r.add(n, what+" must be a string", "")
	case len(n.text) > most:
		r.add(n, fmt.Sprintf("%s must have at most %d bytes, not %d", what, most, len(n.text)), "")
	default:
		return n.text, true
	}
	return "", false
}

// name returns the string n if it can be a name: what a structured-field
// string (RFC 9651, section 3.3.3) can carry, not empty, not framed by spaces.
func (r *report) name(n *node, what string, most int) (string, bool) {
	s, ok := r.text(n, what, most)
	switch {
	case !ok:
		return "", false
	case s == "":
		r.add(n, what+" must not be empty", "")
	case strings.IndexFunc(s, func(c rune) bool { return c < ' ' || c > '~' }) >= 0:
		r.add(n, what+" must be printable ASCII: it is sent in a header", "")
	case strings.TrimSpace(s) != s:
		r.add(n, what+" must not begin or end with a space", "")
	default:
		return s, true
	}
	return "", false
}

// choice returns which of words the string n is. Words in later are known, and
// refused with what stands there.
func (r *report) choice(n *node, what string, words []string, later map[string]string) (string, bool) {
	if n.kind == isText && slices.Contains(words, n.text) {
		return n.text, true
	}
	known := what + " must be " + enumerate(words, "or")
	if n.kind != isText {
		r.add(n, known, "")
		return "", false
	}
	if why, ok := later[n.text]; ok {
		r.add(n, what+" is not supported yet"+why, "use "+words[0])
		return "", false
	}
	r.add(n, known, nearest(n.text, words))
	return "", false
}

// nearest is a hint at a word that is nearly that, if there is one.
func nearest(text string, words []string) string {
	if near := spell.Nearest(text, words); near != "" {
		return fmt.Sprintf("did you mean %q?", near)
	}
	return ""
}
