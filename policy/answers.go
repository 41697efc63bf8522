// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"strings"

	"github.com/metehq/mete/policy/internal/parse"
)

// headers reads the header fields in which a front door shows the limits of a rule.
func (c *compiler) headers(d *draft, n *parse.Node) {
	list, ok := c.OneOrMore(n, "headers", len(dialectNames))
	var names []string
	for _, item := range list {
		i := c.Choice(item, "headers", dialectNames[:], nil)
		if ok = ok && i >= 0; ok {
			names = append(names, dialectNames[i])
		}
	}
	if !ok {
		return
	}
	all, err := ParseDialects(names...)
	if err != nil {
		c.Add(n, strings.TrimPrefix(err.Error(), "policy: "), "")
	}
	d.Headers = all
}

// jitter reads how far a front door spreads the waits that it tells denied clients.
func (c *compiler) jitter(d *draft, n *parse.Node) {
	j, err := ParseJitter(n.Text)
	if n.Kind != parse.KindText && n.Kind != parse.KindNumber || err != nil {
		c.Add(n, "jitter must be a share of the wait in whole percent, of at most 100%", `as in "50%", or 0 for none`)
	}
	d.Jitter = j
}
