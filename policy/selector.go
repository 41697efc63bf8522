// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"strings"

	"github.com/metehq/mete/internal/parse"
	"github.com/metehq/mete/internal/requestpath"
	"github.com/metehq/mete/policy/internal/space"
)

// A selector chooses the requests that a policy applies to. It adds its clauses to all rules of the policy.

// A selection is one clause of a selector.
type selection struct {
	clause
	set space.Set
	at  *parse.Node
}

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
		c.Add(n, "the selector is empty", "remove it: the policy then applies to all requests")
	}
	c.selectPaths(o)
	for _, part := range []struct{ field, attribute string }{{"methods", "method"}, {"hosts", "host"}} {
		f := o.Field(part.field)
		if f == nil {
			continue
		}
		a, _ := parseAttribute(part.attribute)
		cl := clause{slot: c.slotFor(a)}
		if s, ok := c.readValues(&cl.pattern, a, f); ok {
			c.selector = append(c.selector, selection{cl, s, f})
		}
	}
}

// selectPaths reads pathExact and pathPrefix; a path may match either. A prefix matches whole segments: /v1 matches
// /v1 and paths that begin with /v1/, but not /v1x.
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
				c.Add(n, fmt.Sprintf("%s does not support *", name), "use pathPrefix for prefixes")
				ok = false
				continue
			case requestpath.IsTemplate(text):
				c.Add(n, fmt.Sprintf("%s does not support templates", name), "match the template in the rules of the policy; escape a brace of the path as %7B or %7D")
				ok = false
				continue
			}
			s, one := c.readValue(&cl.pattern, a, n)
			if one && name == "pathPrefix" {
				s = s.Or(cl.pattern.widen())
			}
			all, ok = all.Or(s), ok && one
		}
	}
	if at == nil || !ok {
		return
	}
	cl.slot = c.slotFor(a)
	cl.pattern.finish()
	c.selector = append(c.selector, selection{cl, all, at})
}

// widen turns the exact path that was added last into a prefix of whole segments. It returns the added values.
func (p *pattern) widen() space.Set {
	path := p.exact[len(p.exact)-1]
	if strings.HasSuffix(path, "/") { // the prefix includes the path itself
		p.exact = p.exact[:len(p.exact)-1]
	} else {
		path += "/"
	}
	p.prefixes = append(p.prefixes, path)
	return space.WithPrefix(path)
}

// addSelector adds the clauses of the policy's selector to a rule, before its own.
func (c *compiler) addSelector(alt *alternative) bool {
	for _, s := range c.selector {
		alt.clauses = append(alt.clauses, s.clause)
		if !c.narrow(alt, s.at, s.slot, s.set) {
			return false
		}
	}
	return true
}
