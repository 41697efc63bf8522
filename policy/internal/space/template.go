// SPDX-License-Identifier: Apache-2.0

package space

import (
	"strings"

	"github.com/metehq/mete/internal/requestpath"
)

// WithTemplate returns the set of paths that match a template.
func WithTemplate(t *requestpath.Template) Set { return WithCapture(t, "", "", false) }

// WithCapture returns the set of paths that match a template and have a text at the wildcard name. Unless whole, the
// text is a prefix.
func WithCapture(t *requestpath.Template, name, text string, whole bool) Set {
	var b TemplateBuilder
	for _, s := range t.Segments() {
		b.Literal("/")
		prefix := ""
		if s.Kind != requestpath.SegmentLiteral && s.Text == name {
			if s.Kind == requestpath.SegmentWildcard && (strings.Contains(text, "/") || whole && text == "") {
				return Set{} // no segment has that text
			}
			if whole {
				b.Literal(text)
				continue
			}
			prefix = text
		}
		switch s.Kind {
		case requestpath.SegmentLiteral:
			b.Literal(s.Text)
		case requestpath.SegmentWildcard:
			b.Segment(prefix)
		case requestpath.SegmentRest:
			b.Literal(prefix)
			b.Rest()
		}
	}
	return WithShape(b.Shape())
}
