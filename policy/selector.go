// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"strings"

	"github.com/metehq/mete/internal/parse"
	"github.com/metehq/mete/policy/internal/space"
)

// A selector says which requests a policy is about. It is no more than clauses
// that all of its rules have beside their own.

// A selection is one clause of a selector.
type selection struct {
	clause
	set space.Set
	at  *parse.Node
}

// readSelector reads a policy's selector.
func (c *compiler) readSelector(n *parse.Node) {
	c.selector = nil
	if n == nil {
		return
	}
	o := c.Object(n, selectorTable)
	if o == nil {
		return
	}
	if len(n.Fields) == 0 {
		c.Add(n, "the selector is empty", "leave it out: the policy is then about all requests")
	}
	c.selectPaths(o)
	for _, part := range []struct{ field, attribute string }{{"methods", "method"}, {"hosts", "host"}} {
		f := o.Field(part.field)
		if f == nil {
			continue
		}
		a, _ := parseAttribute(part.attribute)
		cl := clause{slot: c.slot(a)}
		if s, ok := c.values(&cl.pattern, a, f); ok {
			c.selector = append(c.selector, selection{cl, s, f})
		}
	}
}

// selectPaths reads pathExact and pathPrefix, either of which is enough. A prefix
// ends where a segment of the path does: that of /v1 is /v1 itself and what begins
// with /v1/, and no /v1x.
func (c *compiler) selectPaths(o *parse.Object) {
	a, _ := parseAttribute("path")
	cl, all, ok := clause{}, space.Set{}, true
	var at *parse.Node
	for _, name := range []string{"pathExact", "pathPrefix"} {
		f := o.Field(name)
		if f == nil {
			continue
		}
		at = f
		list, some := c.OneOrMore(f, name, maxMatchValues)
		ok = ok && some
		for _, n := range list {
			text, textOK := c.String(n, name, maxMatchValueBytes)
			switch {
			case !textOK:
				ok = false
				continue
			case strings.HasSuffix(text, "*"):
				c.Add(n, fmt.Sprintf("%s takes no *", name), "pathPrefix is for what begins like that")
				ok = false
				continue
			}
			s, one := c.value(&cl.pattern, a, n)
			if one && name == "pathPrefix" {
				s = s.Or(cl.pattern.widen())
			}
			all, ok = all.Or(s), ok && one
		}
	}
	if at == nil || !ok {
		return
	}
	cl.slot = c.slot(a)
	cl.pattern.finish()
	c.selector = append(c.selector, selection{cl, all, at})
}

// widen makes the path that was last added to p, and is there alone, one that goes
// on at the end of its last segment. It returns what that adds.
func (p *pattern) widen() space.Set {
	path := p.exact[len(p.exact)-1]
	if strings.HasSuffix(path, "/") { // which is itself one of those that begin so
		p.exact = p.exact[:len(p.exact)-1]
	} else {
		path += "/"
	}
	p.prefixes = append(p.prefixes, path)
	return space.WithPrefix(path)
}

// selected puts the clauses of the policy's selector before those of a rule.
func (c *compiler) selected(d *draft) bool {
	for _, s := range c.selector {
		d.clauses = append(d.clauses, s.clause)
		if !c.narrow(d, s.at, s.slot, s.set) {
			return false
		}
	}
	return true
}
