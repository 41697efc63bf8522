// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/parse"
)

func (c *compiler) readLeased(l *Limit, n *parse.Node) {
	switch leased, ok := c.Bool(n, "leased"); {
	case !ok || !leased:
	case l.Shards > 1:
		c.Add(n, "a limit can be leased or split over shards, not both", "remove shards: leasing also relieves a hot key")
	case l.Bucket.Anchor() == bucket.AnchorCalendar:
		c.Add(n, "a calendar window cannot be leased", "remove leased, or use a duration as the window")
	case l.AwaitsResponse():
		c.Add(n, "a limit that is charged by the response cannot be leased", "remove leased: the store can refund only takes that it knows")
	default:
		l.Leased = true
	}
}
