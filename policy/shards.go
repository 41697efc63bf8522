// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"strconv"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/parse"
)

// MaxShards bounds the buckets that one limit can be split over.
const MaxShards = 32

const (
	// shardKeyBytes is the length of the suffix that a shard adds to the key of its bucket.
	shardKeyBytes = 4

	// maxShardMatches replaces MaxMatches in policies with shards, because the ID of a request then needs a key of
	// its own.
	maxShardMatches = MaxMatches - 1
)

// soundShardTokens is the least that a shard should hold. With fewer tokens, requests more often find their shards
// empty while others are not.
const soundShardTokens = 5 * bucket.Token

// readShards reads the number of buckets that the limit l is split over. Each bucket needs a part of the limit.
func (c *compiler) readShards(l *Limit, n *parse.Node) {
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
		c.warn(n, "small-shards", fmt.Sprintf("a shard holds only %v tokens; at least %v are recommended", smallest, soundShardTokens), "use fewer shards or a higher burst")
	}
	l.Shards = count
}
