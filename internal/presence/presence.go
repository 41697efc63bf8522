// SPDX-License-Identifier: Apache-2.0

// Package presence counts the nodes that use the same buckets in a store.
package presence

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// DefaultHeartbeat is the default interval between two heartbeats of a node.
const DefaultHeartbeat = 5 * time.Second

const (
	// missedBeats is the number of missing heartbeats after which a node no longer counts. Nodes uses the highest
	// of that many counts, because a store that has lost its data sees other nodes only at their next heartbeat.
	missedBeats = 3

	// minTimeout is the shortest timeout of a heartbeat. A longer interval allows a longer timeout.
	minTimeout = time.Second

	leaveTimeout = time.Second
)

// Nodes is a store's set of nodes.
type Nodes interface {
	// Heartbeat registers this node, and returns the number of nodes that were registered within life, including this
	// one.
	Heartbeat(ctx context.Context, life time.Duration) (int64, error)

	// Leave removes this node.
	Leave(ctx context.Context) error
}

// A Presence registers this node in the store at intervals and counts all nodes. Limits are divided by that
// number while the store does not answer. [Join] creates a Presence. It is safe for concurrent use.
type Presence struct {
	nodes  Nodes
	every  time.Duration
	count  atomic.Int64
	recent [missedBeats]int64 // recent counts, used only by run
	next   int
	stop   context.CancelFunc
	ended  sync.WaitGroup
}

// Join starts heartbeats at an interval; 0 is [DefaultHeartbeat]. All nodes of a store must use the same interval.
// Join sends one heartbeat before it returns, and returns its error. Later errors keep the last count.
func Join(ctx context.Context, nodes Nodes, every time.Duration) (*Presence, error) {
	if every == 0 {
		every = DefaultHeartbeat
	}
	if every < time.Millisecond {
		return nil, fmt.Errorf("join: every %v: must be 0, or at least a millisecond", every)
	}
	p := &Presence{nodes: nodes, every: every}
	if err := p.beat(ctx); err != nil {
		return nil, fmt.Errorf("join: %w", err)
	}
	ctx, p.stop = context.WithCancel(context.Background())
	p.ended.Go(func() { p.run(ctx) })
	return p, nil
}

// Nodes returns the number of nodes, including this one: the highest of the last three counts. It does not change
// while the store does not answer.
func (p *Presence) Nodes() int { return int(max(p.count.Load(), 1)) }

// Leave stops the heartbeats and removes the node, until ctx ends. Call it once.
func (p *Presence) Leave(ctx context.Context) error {
	p.stop()
	p.ended.Wait()
	if err := p.nodes.Leave(ctx); err != nil {
		return fmt.Errorf("leave: %w", err)
	}
	return nil
}

// Close is Leave with a timeout of a second. It ignores errors, because the other nodes notice the missing
// heartbeats.
func (p *Presence) Close() {
	ctx, cancel := context.WithTimeout(context.Background(), leaveTimeout)
	defer cancel()
	_ = p.Leave(ctx)
}

func (p *Presence) run(ctx context.Context) {
	ticker := time.NewTicker(p.every)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		_ = p.beat(ctx) // the next one retries
	}
}

// beat registers the node and counts the nodes.
func (p *Presence) beat(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, max(p.every, minTimeout))
	defer cancel()
	n, err := p.nodes.Heartbeat(ctx, missedBeats*p.every)
	if err != nil {
		return err
	}
	p.recent[p.next%missedBeats] = n
	p.next++
	p.count.Store(max(p.recent[0], p.recent[1], p.recent[2]))
	return nil
}
