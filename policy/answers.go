// SPDX-License-Identifier: Apache-2.0

package policy

import "strings"

// answers say how front doors tell of the limits of rules.
type answers struct {
	headers Dialects
	jitter  Jitter
}

// readAnswers reads what an object says of it; above is what holds where it says
// nothing.
func (c *compiler) readAnswers(o *object, above answers) answers {
	if n := o.field("headers"); n != nil {
		list := []*node{n}
		if n.kind == isList {
			list, _ = c.list(n, "headers", true, len(dialectNames))
		}
		var names []string
		for _, item := range list {
			if word, ok := c.choice(item, "headers", dialectNames[:], nil); ok {
				names = append(names, word)
			}
		}
		if len(names) == len(list) && len(names) > 0 {
			all, err := ParseDialects(names...)
			if err != nil {
				c.add(n, strings.TrimPrefix(err.Error(), "policy: "), "")
			}
			above.headers = all
		}
	}
	if n := o.field("jitter"); n != nil {
		j, err := ParseJitter(n.text)
		if n.kind != isText && n.kind != isNumber || err != nil {
			c.add(n, "jitter must be a share of the wait in whole percent, of at most 100%", `as in "50%", or 0 for none`)
		}
		above.jitter = j
	}
	return above
}
