// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"cmp"
	"slices"

	"github.com/metehq/mete/internal/parse"
	"github.com/metehq/mete/internal/visible"
)

// A Warning is something that is right in a policy and yet worth a look.
type Warning struct {
	Path   string // JSON Pointer (RFC 6901) to the place; empty for the whole file
	Code   string // a word for the kind, such as "approximated-rate"; it stays the same over versions
	Reason string // what is to be seen
	Hint   string // what to write instead; may be empty
}

// String formats w on one line, hint included.
func (w Warning) String() string {
	s := w.Reason
	if w.Path != "" {
		s = w.Path + ": " + s
	}
	if w.Hint != "" {
		s += "; " + w.Hint
	}
	return visible.Text(s)
}

// A placedWarning knows its offset in the file, to sort by.
type placedWarning struct {
	Warning
	at int64
}

// warn notes something about the place n that is no mistake.
func (c *compiler) warn(n *parse.Node, code, reason, hint string) {
	c.warned = append(c.warned, placedWarning{Warning{n.Path, code, reason, hint}, n.At})
}

// warnings are those that were noted, in the order of the file.
func (c *compiler) warnings() (list []Warning) {
	slices.SortStableFunc(c.warned, func(a, b placedWarning) int { return cmp.Compare(a.at, b.at) })
	for _, w := range c.warned {
		list = append(list, w.Warning)
	}
	return list
}
