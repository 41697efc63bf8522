// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"strconv"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/parse"
)

// MaxShards bounds the buckets that one limit can be split over. More are
// refused.
const MaxShards = 32

const (
	// shardKeyBytes is how much longer than its bucket's the key of a shard is.
	shardKeyBytes = 4

	// maxShardMatches takes the place of MaxMatches where a policy has shards: the
	// ID of a request needs a key of its own then.
	maxShardMatches = MaxMatches - 1
)

// soundShardTokens is how much a shard should hold. The less it does, the more
// often requests find the shards they look at empty, and others not.
const soundShardTokens = 5 * bucket.Token

// shards reads the number of buckets that the limit l is split over. There must be a part
// for each.
func (c *compiler) shards(l *Limit, n *parse.Node) {
	count, err := strconv.Atoi(n.Text)
	if n.Kind != parse.KindNumber || err != nil || count < 2 || count > MaxShards {
		c.Add(n, fmt.Sprintf("shards must be a whole number between 2 and %d", MaxShards), "")
		return
	}
	if _, err := l.Bucket.Shard(0, count); err != nil { // the largest
		c.Add(n, parse.Reason(err), "")
		return
	}
	if smallest := l.Bucket.Capacity() / bucket.Tokens(count); smallest < soundShardTokens {
		c.warn(n, "small-shards", fmt.Sprintf("a shard holds only %v tokens, and %v or more are sound", smallest, soundShardTokens), "use fewer shards or a higher burst")
	}
	l.Shards = count
}
