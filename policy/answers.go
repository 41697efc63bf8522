// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"github.com/metehq/mete/internal/dialect"
	"github.com/metehq/mete/policy/internal/parse"
)

// headers reads the header fields in which a front door shows the limits of a rule.
func (c *compiler) headers(d *draft, n *parse.Node) {
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

// jitter reads how far a front door spreads the waits that it tells denied clients.
func (c *compiler) jitter(d *draft, n *parse.Node) {
	j, err := dialect.ParseJitter(n.Text)
	if n.Kind != parse.KindText && n.Kind != parse.KindNumber || err != nil {
		c.Add(n, "jitter must be a share of the wait in whole percent, of at most 100%", `as in "50%", or 0 for none`)
	}
	d.Jitter = j
}
