// SPDX-License-Identifier: Apache-2.0

package mete

// ShardStore is what a Limiter puts around its store, with another source of
// random numbers.
func ShardStore(s Store, random func(n int) int) Store {
	return &sharded{store: s, random: random, parts: takesInParts(s)}
}

var (
	ShardKeys   = shardKeys
	IsShardKey  = isShardKey
	CheckShards = checkShards
)
