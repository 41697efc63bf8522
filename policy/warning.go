// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"cmp"
	"slices"

	"github.com/metehq/mete/internal/parse"
	"github.com/metehq/mete/internal/visible"
)

// A Warning reports a valid but questionable part of a policy.
type Warning struct {
	Path   string // JSON Pointer (RFC 6901); empty for the whole file
	Code   string // a stable identifier of the kind, such as "approximated-rate"
	Reason string // the finding
	Hint   string // the remedy; may be empty
}

// String formats w on one line, including the hint.
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

type placedWarning struct {
	Warning
	at int64
}

func (c *compiler) warn(n *parse.Node, code, reason, hint string) {
	c.warned = append(c.warned, placedWarning{Warning{n.Path, code, reason, hint}, n.At})
}

func (c *compiler) sortedWarnings() (list []Warning) {
	slices.SortStableFunc(c.warned, func(a, b placedWarning) int { return cmp.Compare(a.at, b.at) })
	for _, w := range c.warned {
		list = append(list, w.Warning)
	}
	return list
}
