// SPDX-License-Identifier: Apache-2.0

package mete

import (
	"fmt"
	"strconv"
	"strings"
)

// A shard's key is that of its bucket, a mark and its number:
//
//	free:ip=192.0.2.1|#3
//
// A key never names two buckets. The number ends at the last mark, so that two
// keys of shards are the same only where bucket and number are. And keys that a
// policy makes do not end like this: in them a bar is followed by a component,
// which has an equals sign. Those of explicit charges must not look like it
// either: see isShardKey. The marks of request IDs begin with the shard mark, as
// no key of a policy does.
const shardMark = "|#"

// maxShardKeyBytes is how much longer than its bucket's the key of a shard is.
const maxShardKeyBytes = len(shardMark) + 2

func shardKey(key string, shard int) string { return key + shardMark + strconv.Itoa(shard) }

// shardKeys appends the keys of a bucket that is split over so many shards: its
// own where it is not.
func shardKeys(dst []string, key string, shards int) []string {
	if shards < 2 {
		return append(dst, key)
	}
	for i := range shards {
		dst = append(dst, shardKey(key, i))
	}
	return dst
}

// isShardKey reports whether a key looks like one that is made here, and must
// not be given to a bucket.
func isShardKey(key string) bool {
	if strings.HasPrefix(key, shardMark) {
		return true
	}
	end := len(key)
	for end > 0 && '0' <= key[end-1] && key[end-1] <= '9' {
		end--
	}
	return end < len(key) && strings.HasSuffix(key[:end], shardMark)
}

// checkShards reports why charges cannot be divided: a limit that cannot be
// split so far, keys that would be too long, or more of them than a store takes.
// One is kept for the mark of a request's ID.
func checkShards(charges []Charge) error {
	keys := 0
	for _, c := range charges {
		if keys += max(c.Shards, 1); keys > MaxCharges-1 {
			return fmt.Errorf("more than %d keys, each shard counted, in a request with shards", MaxCharges-1)
		}
		if !isSharded(c) {
			continue
		}
		if len(c.Key) > MaxKeyBytes-maxShardKeyBytes {
			return fmt.Errorf("the key of a bucket with shards has %d bytes, more than %d", len(c.Key), MaxKeyBytes-maxShardKeyBytes)
		}
		if _, err := c.Limit.Shard(0, c.Shards); err != nil {
			return err
		}
	}
	return nil
}
