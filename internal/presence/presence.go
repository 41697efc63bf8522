// SPDX-License-Identifier: Apache-2.0

// Package presence lets the nodes that use the same buckets in a store count each other.
package presence

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// DefaultBeat is the time between two beats of a node.
const DefaultBeat = 5 * time.Second

const (
	// missedBeats is the number of missing beats after which a node no longer counts. It is
	// also the number of counts of which the highest holds: a store that has lost its memory
	// sees the other nodes again only at their next beats.
	missedBeats = 3

	// minTimeout is the least time that one beat may take. A longer interval allows more.
	minTimeout = time.Second

	// leaveTimeout is the time that a node has to remove itself.
	leaveTimeout = time.Second
)

// Nodes are the nodes that a store knows.
type Nodes interface {
	// Beat records this node and returns the number of nodes, this one included, that
	// were recorded within life.
	Beat(ctx context.Context, life time.Duration) (int64, error)

	// Leave removes this node.
	Leave(ctx context.Context) error
}

// A Presence is a node among others. It records itself in the store at intervals and
// counts the others. Limits are divided by that number while the store does not answer.
// [Join] makes a Presence. It is safe for concurrent use.
type Presence struct {
	nodes  Nodes
	every  time.Duration
	count  atomic.Int64
	recent [missedBeats]int64 // counts; the goroutine's own
	next   int
	stop   context.CancelFunc
	ended  sync.WaitGroup
}

// Join begins to beat at an interval; 0 is [DefaultBeat]. All nodes of a store must use
// the same interval. Join beats once before it returns, and its error is the error of
// that beat. Later errors change nothing: the last count holds.
func Join(ctx context.Context, nodes Nodes, every time.Duration) (*Presence, error) {
	if every == 0 {
		every = DefaultBeat
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

// Nodes returns the number of nodes, this one included: the highest of the last three
// counts. It stays as it is while the store does not answer.
func (p *Presence) Nodes() int { return int(max(p.count.Load(), 1)) }

// Leave ends the beats and removes the node, as long as ctx lasts. The caller must call it
// once.
func (p *Presence) Leave(ctx context.Context) error {
	p.stop()
	p.ended.Wait()
	if err := p.nodes.Leave(ctx); err != nil {
		return fmt.Errorf("leave: %w", err)
	}
	return nil
}

// Close is Leave within a second. It reports no error: the other nodes notice that the
// beats are missing.
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
		_ = p.beat(ctx) // the next one follows
	}
}

// beat records the node, and counts.
func (p *Presence) beat(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, max(p.every, minTimeout))
	defer cancel()
	n, err := p.nodes.Beat(ctx, missedBeats*p.every)
	if err != nil {
		return err
	}
	p.recent[p.next%missedBeats] = n
	p.next++
	p.count.Store(max(p.recent[0], p.recent[1], p.recent[2]))
	return nil
}
