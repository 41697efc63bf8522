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

// DefaultBeat is the time between two beats of a node.
const DefaultBeat = presence.DefaultBeat

// A Presence is a node among others that use the same keys. It records itself in Redis at
// intervals and counts the others, for limits that are divided among the nodes while Redis
// does not answer. [Join] makes it; it is safe for concurrent use.
type Presence struct{ joined *presence.Presence }

// Join begins to record the node with this id in the sorted set {prefix}nodes, at an
// interval; 0 is [DefaultBeat]. The nodes must use the same interval. Join records it
// once before it returns, and its error is the error of that call. Later errors change
// nothing: the last count holds.
func Join(ctx context.Context, client rueidis.Client, prefix, id string, every time.Duration) (*Presence, error) {
	joined, err := presence.Join(ctx, nodes{client, prefix + "nodes", id}, every)
	if err != nil {
		return nil, fmt.Errorf("redisstore: %w", err)
	}
	return &Presence{joined}, nil
}

// Nodes returns the number of nodes, this one included: the highest of the last three
// counts. It stays as it is while Redis does not answer.
func (p *Presence) Nodes() int { return p.joined.Nodes() }

// Leave ends the beats and removes the node, as long as ctx lasts. The caller must call it
// once.
func (p *Presence) Leave(ctx context.Context) error {
	if err := p.joined.Leave(ctx); err != nil {
		return fmt.Errorf("redisstore: %w", err)
	}
	return nil
}

// nodes implement [presence.Nodes]: a sorted set.
type nodes struct {
	client  rueidis.Client
	key, id string
}

func (n nodes) Beat(ctx context.Context, life time.Duration) (int64, error) {
	return beat.Exec(ctx, n.client, []string{n.key}, []string{n.id, strconv.FormatInt(life.Milliseconds(), 10)}).AsInt64()
}

func (n nodes) Leave(ctx context.Context) error {
	return n.client.Do(ctx, n.client.B().Zrem().Key(n.key).Member(n.id).Build()).Error()
}
