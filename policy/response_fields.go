// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"github.com/metehq/mete/internal/dialect"
	"github.com/metehq/mete/internal/parse"
)

func (c *compiler) readHeaders(d *draft, n *parse.Node) {
	list, ok := c.OneOrMore(n, "headers", len(dialect.Names))
	var names []string
	for _, item := range list {
		i := c.Choice(item, "headers", dialect.Names[:], nil)
		if ok = ok && i >= 0; ok {
			names = append(names, dialect.Names[i])
		}
	}
	if !ok {
		return
	}
	all, err := dialect.Parse(names...)
	if err != nil {
		c.Add(n, err.Error(), "")
	}
	d.Headers = all
}

func (c *compiler) readJitter(d *draft, n *parse.Node) {
	j, err := dialect.ParseJitter(n.Text)
	if n.Kind != parse.KindText && n.Kind != parse.KindNumber || err != nil {
		c.Add(n, "jitter must be a whole percentage of the wait, at most 100%", `as in "50%", or 0 for none`)
	}
	d.Jitter = j
}
