// SPDX-License-Identifier: Apache-2.0

package shards

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/metehq/mete/store"
)

// The key of a shard is the key of its bucket, a mark and a number:
//
//	free:ip=192.0.2.1|#3
//
// Keys are unambiguous. The number follows the last mark, so two shard keys are equal only if bucket and number are.
// Keys of a policy never end like this: in them, a component with an equals sign follows a bar. [IsKey] rejects
// explicit charges with such keys. Marker keys of request IDs start with the mark, and no key of a policy does.

// Mark separates the key of a bucket from the number of a shard.
const Mark = "|#"

const maxKeyBytes = len(Mark) + 2

func shardKey(key string, shard int) string { return key + Mark + strconv.Itoa(shard) }

// Keys appends the keys of all shards of a bucket, or key itself if it is not sharded.
func Keys(dst []string, key string, shards int) []string {
	if shards < 2 {
		return append(dst, key)
	}
	for i := range shards {
		dst = append(dst, shardKey(key, i))
	}
	return dst
}

// IsKey reports whether key has the form of a shard's or marker's key, which buckets must not use.
func IsKey(key string) bool {
	if strings.HasPrefix(key, Mark) {
		return true
	}
	end := len(key)
	for end > 0 && '0' <= key[end-1] && key[end-1] <= '9' {
		end--
	}
	return end < len(key) && strings.HasSuffix(key[:end], Mark)
}

// Check reports why charges cannot be sharded. A limit may have too many shards, keys may be too long, or there may
// be too many keys for the store. One key is reserved for the marker of a request ID.
func Check(charges []store.Charge) error {
	keys := 0
	for _, c := range charges {
		if keys += max(c.Shards, 1); keys > store.MaxCharges-1 {
			return fmt.Errorf("a request with shards must have at most %d keys, counting every shard", store.MaxCharges-1)
		}
		if !isSharded(c) {
			continue
		}
		if c.Penalty != nil {
			return errors.New("a penalty needs one bucket in the store: remove the shards")
		}
		if len(c.Key) > store.MaxKeyBytes-maxKeyBytes {
			return fmt.Errorf("key of a sharded bucket has %d bytes: must be at most %d", len(c.Key), store.MaxKeyBytes-maxKeyBytes)
		}
		if _, err := c.Limit.Shard(0, c.Shards); err != nil {
			return err
		}
	}
	return nil
}
