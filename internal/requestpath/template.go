// SPDX-License-Identifier: Apache-2.0

package requestpath

import (
	"fmt"
	"slices"
	"strings"
)

// A Template is a path with wildcards in the syntax of [net/http.ServeMux]:
//
//	/users/{id}/orders   {id} is one segment that is not empty
//	/files/{rest...}     {rest...} is the rest of the path, which may be empty
//	/users/{id}/{$}      {$} is the end of a path with a trailing slash
//
// A Template is immutable. [ParseTemplate] makes one.
type Template struct {
	text     string
	segments []Segment
}

// A Segment is a part of a template between slashes.
type Segment struct {
	Kind SegmentKind
	Text string // the decoded literal, or the name of the wildcard
}

// A SegmentKind is the kind of a segment.
type SegmentKind uint8

const (
	SegmentLiteral  SegmentKind = iota // empty for {$}
	SegmentWildcard                    // {name}
	SegmentRest                        // {name...}
)

// IsTemplate reports whether the text of a rule is meant as a template. A path with braces writes them as %7B and %7D.
func IsTemplate(written string) bool { return strings.ContainsAny(written, "{}") }

// ParseTemplate parses the template of a rule. It rejects templates that no path can have.
func ParseTemplate(written string) (*Template, Mistake) {
	t := &Template{text: written}
	if m := checkTemplate(written); m != (Mistake{}) {
		return nil, m
	}
	parts := strings.Split(written[1:], "/")
	for i, part := range parts {
		s, m := readSegment(part, i == len(parts)-1)
		if m != (Mistake{}) {
			return nil, m
		}
		if s.Kind != SegmentLiteral && slices.ContainsFunc(t.segments, func(u Segment) bool { return u.Kind != SegmentLiteral && u.Text == s.Text }) {
			return nil, Mistake{fmt.Sprintf("the template has two wildcards with the name %s", s.Text), "give each wildcard its own name"}
		}
		t.segments = append(t.segments, s)
	}
	return t, Mistake{}
}

// checkTemplate checks the text of a template as a whole.
func checkTemplate(written string) Mistake {
	switch at := strings.IndexAny(written, "?#"); {
	case !strings.HasPrefix(written, "/"):
		return Mistake{"a path must start with a slash", fmt.Sprintf("write %q", "/"+written)}
	case at >= 0 && written[at] == '?':
		return Mistake{"the query is not part of the path", fmt.Sprintf("write %q, and match query:NAME; or %%3F for the character", written[:at])}
	case at >= 0:
		return Mistake{"a path has no fragment", fmt.Sprintf("write %q; or %%23 for the character", written[:at])}
	case strings.HasSuffix(written, "*"):
		base := strings.TrimRight(written, "*/")
		return Mistake{"a template has no *", fmt.Sprintf("write %q for all paths below", base+"/{rest...}")}
	case strings.HasSuffix(written, "/"):
		return Mistake{"a template must not end with a slash", fmt.Sprintf("write %q for the path with the slash, or %q for all paths below", written+"{$}", written+"{rest...}")}
	}
	return Mistake{}
}

func readSegment(part string, last bool) (s Segment, m Mistake) {
	if !strings.ContainsAny(part, "{}") {
		return readLiteral(part)
	}
	name, closed := strings.CutSuffix(strings.TrimPrefix(part, "{"), "}")
	switch {
	case strings.Count(part, "{") != strings.Count(part, "}"):
		return s, Mistake{fmt.Sprintf("the braces in the segment %q are not balanced", part), "write a wildcard as {id}; or %7B and %7D for braces of the path"}
	case !closed || part[0] != '{' || strings.ContainsAny(name, "{}"):
		return s, Mistake{fmt.Sprintf("a wildcard is a whole segment, not a part of %q", part), `as in "/users/{id}"`}
	case name == "$" && !last:
		return s, Mistake{"{$} is only allowed at the end of a template", "remove it"}
	case name == "$":
		return Segment{}, Mistake{}
	}
	name, rest := strings.CutSuffix(name, "...")
	switch {
	case name == "":
		return s, Mistake{"a wildcard needs a name", "as in {id} or {rest...}"}
	case !IsWildcardName(name):
		return s, Mistake{fmt.Sprintf("the name of a wildcard has letters, digits and underscores, and starts with a letter, unlike %q", name), "as in {order_id}"}
	case rest && !last:
		return s, Mistake{fmt.Sprintf("{%s...} is only allowed at the end of a template", name), fmt.Sprintf("write {%s} for one segment", name)}
	case rest:
		return Segment{SegmentRest, name}, Mistake{}
	}
	return Segment{SegmentWildcard, name}, Mistake{}
}

// IsWildcardName reports whether a wildcard can have the name.
func IsWildcardName(name string) bool {
	return name != "" && name[0] > '9' && strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") == ""
}

func readLiteral(part string) (s Segment, m Mistake) {
	if name, ok := placeholder(part); ok {
		return s, Mistake{fmt.Sprintf("%q is the placeholder of another router", part), fmt.Sprintf("write {%s}", name)}
	}
	text, ok := decode(part)
	switch {
	case !ok:
		return s, Mistake{"a percent sign must start an escape such as %20", "write %25 for the character"}
	case strings.ContainsAny(text, `/\`):
		return s, Mistake{`the segments of a template have no escaped slash and no "\"`, "write a segment for each part"}
	case text == "" || text == "." || text == "..":
		return s, Mistake{"empty and dot segments are resolved before a path is matched", "write the template without them"}
	case strings.Contains(text, ";"):
		return s, Mistake{"path parameters after \";\" are removed before a path is matched", "write the template without them"}
	case strings.IndexByte(text, 0) >= 0:
		return s, Mistake{"a path must not contain a NUL", "leave it out"}
	}
	return Segment{SegmentLiteral, text}, Mistake{}
}

// placeholder returns a name for the placeholder of another router, such as :id, <id> or <int:id>.
func placeholder(part string) (name string, ok bool) {
	switch {
	case len(part) > 1 && part[0] == ':' && isLetter(part[1]):
		name = part[1:]
	case strings.ContainsAny(part, "<>"):
		name = strings.Trim(part, "<>")
		name = name[strings.LastIndexByte(name, ':')+1:]
	default:
		return "", false
	}
	if name = strings.Map(func(c rune) rune {
		if c < 0x80 && (isLetter(byte(c)) || '0' <= c && c <= '9') {
			return c
		}
		return -1
	}, name); name == "" || name[0] <= '9' {
		name = "id"
	}
	return name, true
}

// String returns the template as a rule writes it.
func (t *Template) String() string { return t.text }

// Shape returns a text that is equal for templates that match the same paths, with other names of wildcards.
func (t *Template) Shape() string {
	var b strings.Builder
	for _, s := range t.segments {
		b.WriteByte('/')
		switch s.Kind {
		case SegmentLiteral:
			b.WriteString(s.Text)
		case SegmentWildcard:
			b.WriteString("\x00") // which no literal has
		case SegmentRest:
			b.WriteString("\x00...")
		}
	}
	return b.String()
}

// Segments returns the segments. The caller must not modify them.
func (t *Template) Segments() []Segment { return t.segments }

// HasWildcard reports whether the template has a wildcard with the name.
func (t *Template) HasWildcard(name string) bool {
	return slices.ContainsFunc(t.segments, func(s Segment) bool { return s.Kind != SegmentLiteral && s.Text == name })
}

// Match reports whether a path in the form of [Parse] matches the template.
func (t *Template) Match(path string) bool {
	if path == "" || path[0] != '/' {
		return false
	}
	rest := path[1:]
	for i := range t.segments {
		s := &t.segments[i]
		if s.Kind == SegmentRest {
			return true
		}
		segment, after, more := strings.Cut(rest, "/")
		if more == (i == len(t.segments)-1) || s.Kind == SegmentLiteral && segment != s.Text || s.Kind == SegmentWildcard && segment == "" {
			return false
		}
		rest = after
	}
	return true
}

// Capture returns the text of a path at the wildcard with the name. The path matches the template.
func (t *Template) Capture(path, name string) (text string, ok bool) {
	rest := path[1:]
	for i := range t.segments {
		s := &t.segments[i]
		segment, after, _ := strings.Cut(rest, "/")
		switch {
		case s.Kind == SegmentLiteral || s.Text != name:
		case s.Kind == SegmentRest:
			return rest, true
		default:
			return segment, true
		}
		rest = after
	}
	return "", false
}

// Contradicts returns the name of a wildcard that has different texts in the two templates for a path that matches
// both, or "".
func (t *Template) Contradicts(u *Template) (name string) {
	if !t.overlaps(u) {
		return ""
	}
	for i, s := range t.segments {
		if s.Kind == SegmentLiteral {
			continue
		}
		for j, o := range u.segments {
			// {x} and {x...} are the same text if the path ends with it.
			if o.Kind == SegmentLiteral || o.Text != s.Text || i == j && (s.Kind == o.Kind || i == len(t.segments)-1 && j == len(u.segments)-1) {
				continue
			}
			return s.Text
		}
	}
	return ""
}

// overlaps reports whether a path matches both templates.
func (t *Template) overlaps(u *Template) bool {
	for i := 0; ; i++ {
		switch {
		case i == len(t.segments) || i == len(u.segments):
			return len(t.segments) == len(u.segments)
		case t.segments[i].Kind == SegmentRest || u.segments[i].Kind == SegmentRest:
			return true
		case t.segments[i].Kind == SegmentLiteral && u.segments[i].Kind == SegmentLiteral:
			if t.segments[i].Text != u.segments[i].Text {
				return false
			}
		case t.segments[i].Kind == SegmentLiteral && t.segments[i].Text == "", u.segments[i].Kind == SegmentLiteral && u.segments[i].Text == "":
			return false // {$}, and a segment that is not empty
		}
	}
}
