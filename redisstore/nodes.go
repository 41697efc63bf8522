// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"context"
	_ "embed" // of the script
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"
)

//go:embed beat.lua
var beatScript string

var beat = rueidis.NewLuaScript(beatScript)

// DefaultBeat is how often a node says that it is there.
const DefaultBeat = 5 * time.Second

// missedBeats is after how many beats that did not come a node counts no more,
// and how many counts the highest is taken of: when Redis has lost its memory,
// the others need one to be seen again.
const missedBeats = 3

// A Presence is a node among others that use the same keys. It says at intervals
// that it is there, and counts the others: for limits that are divided among the
// nodes while Redis does not answer. [Join] makes it; it is safe for concurrent
// use.
type Presence struct {
	client  rueidis.Client
	key, id string
	every   time.Duration
	count   atomic.Int64
	recent  [missedBeats]int64 // counts; the goroutine's own
	next    int
	stop    context.CancelFunc
	ended   sync.WaitGroup
}

// Join begins to say every so often that the node with this id is there, as a
// member of the sorted set {prefix}nodes. 0 is [DefaultBeat]. The nodes must use
// the same interval. It says so once before it returns; its error is that of the
// first time. Later ones change nothing: the last count holds.
func Join(ctx context.Context, client rueidis.Client, prefix, id string, every time.Duration) (*Presence, error) {
	if every == 0 {
		every = DefaultBeat
	}
	if every < time.Millisecond {
		return nil, fmt.Errorf("redisstore: join: every %v: must be 0, or at least a millisecond", every)
	}
	p := &Presence{client: client, key: prefix + "nodes", id: id, every: every}
	if err := p.beat(ctx); err != nil {
		return nil, fmt.Errorf("redisstore: join: %w", err)
	}
	ctx, p.stop = context.WithCancel(context.Background())
	p.ended.Go(func() { p.run(ctx) })
	return p, nil
}

// Nodes is how many nodes there are, this one included: the most that were seen
// in the last three beats. While Redis does not answer it stays what it was.
func (p *Presence) Nodes() int { return int(max(p.count.Load(), 1)) }

// Leave says that the node is gone, as long as ctx lasts, and ends its goroutine.
// It must be called once.
func (p *Presence) Leave(ctx context.Context) error {
	p.stop()
	p.ended.Wait()
	err := p.client.Do(ctx, p.client.B().Zrem().Key(p.key).Member(p.id).Build()).Error()
	if err != nil {
		return fmt.Errorf("redisstore: leave: %w", err)
	}
	return nil
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

// beat says that the node is there, and counts.
func (p *Presence) beat(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, max(p.every, DefaultTimeout))
	defer cancel()
	life := strconv.FormatInt((missedBeats * p.every).Milliseconds(), 10)
	n, err := beat.Exec(ctx, p.client, []string{p.key}, []string{p.id, life}).AsInt64()
	if err != nil {
		return err
	}
	p.recent[p.next%missedBeats] = n
	p.next++
	p.count.Store(max(p.recent[0], p.recent[1], p.recent[2]))
	return nil
}
