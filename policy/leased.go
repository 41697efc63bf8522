// SPDX-License-Identifier: Apache-2.0

package policy

// leased reads whether tokens of the limit l, which is complete but for that, may
// be taken in advance.
func (c *compiler) leased(l *Limit, n *node) bool {
	switch {
	case n.kind != isBool:
		c.add(n, "leased must be true or false", "")
		return false
	case n.text == "false":
		return true
	case l.Shards > 1:
		c.add(n, "a limit is either leased or split over shards", "remove shards: what is leased takes the load off a hot key, too")
		return false
	}
	l.Leased = true
	return true
}
