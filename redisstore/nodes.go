// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"context"
	_ "embed" // of the script
	"fmt"
	"strconv"
	"time"

	"github.com/redis/rueidis"

	"github.com/metehq/mete/internal/presence"
)

//go:embed beat.lua
var beatScript string

var beat = rueidis.NewLuaScript(beatScript)

// DefaultHeartbeat is the interval between two heartbeats of a node.
const DefaultHeartbeat = presence.DefaultHeartbeat

// A Presence registers this node in Redis at intervals and counts the nodes that use the same keys. While Redis
// does not answer, limits are divided among that many nodes. [Join] creates a Presence. It is safe for concurrent
// use.
type Presence struct{ joined *presence.Presence }

// Join registers the node with this id in the sorted set {prefix}nodes, at an interval; 0 is [DefaultHeartbeat]. All
// nodes must use the same interval. Join registers once before it returns, and returns the error of that call.
// After a later error, the last count stays valid.
func Join(ctx context.Context, client rueidis.Client, prefix, id string, every time.Duration) (*Presence, error) {
	joined, err := presence.Join(ctx, nodes{client, prefix + "nodes", id}, every)
	if err != nil {
		return nil, fmt.Errorf("redisstore: %w", err)
	}
	return &Presence{joined}, nil
}

// Nodes returns the number of nodes, including this one: the highest of the last three counts. It does not change
// while Redis does not answer.
func (p *Presence) Nodes() int { return p.joined.Nodes() }

// Leave stops the heartbeats and removes the node, until ctx ends. Call it once.
func (p *Presence) Leave(ctx context.Context) error {
	if err := p.joined.Leave(ctx); err != nil {
		return fmt.Errorf("redisstore: %w", err)
	}
	return nil
}

type nodes struct {
	client  rueidis.Client
	key, id string
}

func (n nodes) Heartbeat(ctx context.Context, life time.Duration) (int64, error) {
	return beat.Exec(ctx, n.client, []string{n.key}, []string{n.id, strconv.FormatInt(life.Milliseconds(), 10)}).AsInt64()
}

func (n nodes) Leave(ctx context.Context) error {
	return n.client.Do(ctx, n.client.B().Zrem().Key(n.key).Member(n.id).Build()).Error()
}
