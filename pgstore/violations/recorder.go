// SPDX-License-Identifier: Apache-2.0

package violations

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/denial"
	"github.com/metehq/mete/policy"
)

const (
	shards = 16

	maxOthers = 1024
)

// A Recorder writes denials to the table in the background. [New] creates it, and [Recorder.Close] ends its
// goroutine. It is safe for concurrent use.
type Recorder struct {
	pool   *pgxpool.Pool
	config Config
	now    func() time.Time
	user   policy.Attribute
	node   string
	seed   maphash.Seed
	shards [shards]shard
	others shard // overflow
	turn   int   // the shard to empty first

	dropped, written, rows, failed atomic.Int64

	closing context.Context // done when Close is called
	close   context.CancelFunc
	writing context.Context // done a Timeout after Close
	giveUp  context.CancelFunc
	ending  sync.Once
	ended   chan struct{}
}

// New returns a recorder that writes through pool. The caller closes pool after the recorder. New does not wait
// for the database: the table can be created later.
func New(pool *pgxpool.Pool, config Config) (*Recorder, error) {
	if pool == nil {
		return nil, errors.New("violations: new: pool is required")
	}
	config, err := config.withDefaults()
	if err != nil {
		return nil, fmt.Errorf("violations: new: %w", err)
	}
	r := &Recorder{
		pool: pool, config: config, now: time.Now, user: mustAttribute(config.UserAttribute),
		node: sanitize(config.Node, maxNode), seed: maphash.MakeSeed(), ended: make(chan struct{}),
	}
	if config.Now != nil {
		r.now = func() time.Time { return config.Now().Time() }
	}
	for i := range r.shards {
		r.shards[i] = shard{size: max(config.MaxQueue/shards, 1), sources: map[rowID]*source{}}
	}
	r.others = shard{size: maxOthers, sources: map[rowID]*source{}}
	r.closing, r.close = context.WithCancel(context.Background())
	r.writing, r.giveUp = context.WithCancel(context.Background())
	go r.run()
	return r, nil
}

// Record records a denial: use it as [mete.Config.OnDenial]. It takes about a microsecond, independent of the
// database, and keeps only copies of d.
func (r *Recorder) Record(_ context.Context, d *mete.Denial) {
	if !d.Allowed && d.Reason != mete.ReasonStoreError {
		r.record(d, d.Rule, d.Reason, denial.Worst(d.Limits()), d.Limits(), false)
	}
	denial.EachShadow(d, func(at int) {
		r.record(d, d.Shadow[at].Rule.Name, d.Shadow[at].Limit.Reason, at, d.Shadow, true)
	})
}

// record records one denial by the status at index at, or without a status if at is -1.
func (r *Recorder) record(d *mete.Denial, rule, reason string, at int, statuses []mete.Status, shadow bool) {
	i := rowID{rule: rule, reason: reason, shadow: shadow}
	var status *mete.Status
	var cost bucket.Tokens
	if at >= 0 {
		status, cost = &statuses[at], statuses[at].Cost
		i.limit, i.key = status.Limit.Name, status.Key
	} else if d.Override != nil && !shadow { // a block override has no limit
		i.limit = d.Override.ID
	}
	now := r.now()
	home := &r.shards[maphash.String(r.seed, i.key)%shards]
	counted, room := home.count(i, cost, now)
	if counted || room && home.insert(r.newRow(i, status, d, now)) {
		return
	}
	i.key = Others
	counted, room = r.others.count(i, cost, now)
	if counted || room && r.others.insert(r.newRow(i, status, d, now)) {
		return
	}
	r.dropped.Add(1)
}

// Close writes the waiting rows and ends the recorder, within the Timeout. It drops the remaining rows and
// reports their number. Later records are dropped, too.
func (r *Recorder) Close() error {
	r.ending.Do(func() {
		for i := range r.shards {
			r.shards[i].close()
		}
		r.others.close()
		r.close()
		time.AfterFunc(r.config.Timeout, r.giveUp)
	})
	<-r.ended
	if n := r.dropped.Load(); n > 0 {
		return fmt.Errorf("violations: close: %d denials were not written", n)
	}
	return nil
}
