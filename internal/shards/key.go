// SPDX-License-Identifier: Apache-2.0

package shards

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/metehq/mete/store"
)

// A shard's key is that of its bucket, a mark and its number:
//
//	free:ip=192.0.2.1|#3
//
// A key never names two buckets. The number ends at the last mark, so that two
// keys of shards are the same only where bucket and number are. And keys that a
// policy makes do not end like this: in them a bar is followed by a component,
// which has an equals sign. The keys of explicit charges must not look like it
// either: see [IsKey]. The marks of request IDs begin with the shard mark, as
// no key of a policy does.

// Mark stands between the key of a bucket and the number of a shard.
const Mark = "|#"

// maxKeyBytes is how much longer than its bucket's the key of a shard is.
const maxKeyBytes = len(Mark) + 2

func keyOf(key string, shard int) string { return key + Mark + strconv.Itoa(shard) }

// Keys appends the keys of a bucket that is split over so many shards: its
// own where it is not.
func Keys(dst []string, key string, shards int) []string {
	if shards < 2 {
		return append(dst, key)
	}
	for i := range shards {
		dst = append(dst, keyOf(key, i))
	}
	return dst
}

// IsKey reports whether a key looks like one that is made here, and must
// not be given to a bucket.
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

// Check reports why charges cannot be divided: a limit that cannot be
// split so far, keys that would be too long, or more of them than a store takes.
// One is kept for the mark of a request's ID.
func Check(charges []store.Charge) error {
	keys := 0
	for _, c := range charges {
		if keys += max(c.Shards, 1); keys > store.MaxCharges-1 {
			return fmt.Errorf("more than %d keys, each shard counted, in a request with shards", store.MaxCharges-1)
		}
		if !isSharded(c) {
			continue
		}
		if len(c.Key) > store.MaxKeyBytes-maxKeyBytes {
			return fmt.Errorf("the key of a bucket with shards has %d bytes, more than %d", len(c.Key), store.MaxKeyBytes-maxKeyBytes)
		}
		if _, err := c.Limit.Shard(0, c.Shards); err != nil {
			return err
		}
	}
	return nil
}
