// SPDX-License-Identifier: Apache-2.0

package policy

import "github.com/metehq/mete/internal/parse"

func (c *compiler) readLeased(l *Limit, n *parse.Node) {
	switch leased, ok := c.Bool(n, "leased"); {
	case !ok || !leased:
	case l.Shards > 1:
		c.Add(n, "a limit can be leased or split over shards, not both", "remove shards: leasing also relieves a hot key")
	default:
		l.Leased = true
	}
}
