// SPDX-License-Identifier: Apache-2.0

package policyyaml

import (
	"errors"
	"strconv"
	"strings"

	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/policyyaml/yamltree"
)

func parseYAML(name string, data []byte, opts policy.Options) (*policy.Matcher, error) {
	c, err := convert(name, data)
	if err != nil {
		return nil, err
	}
	if c.stopped {
		return nil, c.found
	}
	return compile(name, c.out.Bytes(), opts, c.found, func(paths []string) map[string]place { return placesInYAML(c.root, paths) })
}

// placeInYAML returns the place of what path names: a scalar's own, and that of
// its key for a mapping or sequence.
func placeInYAML(n *yamltree.Node, path string) (place, bool) {
	at := place{n.Line, n.Column}
	for rest := path; rest != ""; {
		var element string
		element, rest, _ = strings.Cut(rest[1:], "/")
		if rest != "" {
			rest = "/" + rest
		}
		n = n.Resolve()
		var next *yamltree.Node
		switch n.Kind {
		case yamltree.List:
			if i, err := strconv.Atoi(element); err == nil && i >= 0 && i < len(n.Items) {
				next = n.Items[i]
				at = place{next.Line, next.Column}
			}
		case yamltree.Mapping:
			for _, f := range n.Fields {
				if pointerEscapes.Replace(f.Key.Value) == element {
					next, at = f.Value, place{f.Key.Line, f.Key.Column}
					break
				}
			}
		}
		if next == nil {
			return place{}, false
		}
		if n = next; n.Kind == yamltree.Scalar {
			at = place{n.Line, n.Column}
		}
	}
	return at, true
}

// syntaxError returns an error of package yamltree as a [Mistake].
func syntaxError(name string, err error) Mistake {
	var e *yamltree.SyntaxError
	if !errors.As(err, &e) {
		return Mistake{File: name, Error: policy.Error{Reason: err.Error()}}
	}
	m := Mistake{File: name, Line: e.Line, Column: e.Column, Error: policy.Error{Reason: "not YAML: " + e.Reason, Hint: e.Hint}}
	if e.Reason == yamltree.SecondDocument {
		m.Reason, m.Hint = e.Reason, "keep one policy in a file, or make them a bundle: policies: [...]"
	}
	return m
}
