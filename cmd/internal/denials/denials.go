// SPDX-License-Identifier: Apache-2.0

// Package denials logs denied requests. It logs the first denial of a key immediately, and then at most one line per
// interval with the number of denials. Unless the configuration allows it, keys are logged as hashes and addresses
// as networks.
//
// The number of lines per second and the number of tracked keys are bounded. Denials of other keys are only
// counted. Denied requests never wait for the log.
package denials

import (
	"context"
	"crypto/rand"
	"hash/maphash"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/internal/denial"
	"github.com/metehq/mete/policy"
)

const (
	// MaxBursts bounds the tracked keys. One line summarizes the denials of all other keys.
	MaxBursts = shards * shardBursts

	shards      = 8
	shardBursts = 512
)

type Config struct {
	Logger    *slog.Logger  // required; must not block
	Interval  time.Duration // between two lines about one key; must be positive
	PerSecond int           // largest number of lines per second, plus one summary line; must be positive
	Raw       bool          // log keys and addresses in plain text
	Key       []byte        // key of the hashes; empty: random
}

// A Log logs denials. Create it with [New]. It is safe for concurrent use.
type Log struct {
	config Config
	seed   maphash.Seed
	shards [shards]shard
	rate   rate

	denials, lines, unlogged atomic.Uint64
	reported                 uint64 // part of unlogged that is in a summary line; owned by sweep
	reportedAt               time.Time
}

// Stats counts denials and lines.
type Stats struct {
	Denials  uint64 // all denials
	Lines    uint64 // written lines
	Unlogged uint64 // denials of keys that were not tracked
	Bursts   int    // tracked keys
}

// An id identifies a burst of denials.
type id struct {
	rule, limit, reason, key string
	shadow                   bool
}

// A burst counts the recent denials of one key.
type burst struct {
	count   uint64    // not logged yet
	last    time.Time // time of the last line; zero for none
	address string    // address of the first of them; empty if unknown
	retry   time.Duration
}

type shard struct {
	mu     sync.Mutex // guards bursts
	bursts map[id]*burst
}

// New returns a log. [Log.Run] must run to write the counts of later denials.
func New(c Config) *Log {
	if len(c.Key) == 0 {
		c.Key = make([]byte, 32)
		_, _ = rand.Read(c.Key) // never fails
	}
	l := &Log{config: c, seed: maphash.MakeSeed()}
	for i := range l.shards {
		l.shards[i].bursts = map[id]*burst{}
	}
	return l
}

var address, _ = policy.ParseAttribute("ip:address")

// Record logs a denial. It is a [mete.Config.OnDenial] hook. It ignores denials because of a store failure, which
// exceed no limit.
func (l *Log) Record(ctx context.Context, d *mete.Denial) {
	now := time.Now()
	if !d.Allowed && d.Reason != mete.ReasonStoreError {
		i := id{rule: d.Rule, reason: d.Reason}
		retry := d.RetryAfter
		if at := denial.Worst(d.Limits()); at >= 0 {
			i.limit, i.key = d.Limits()[at].Limit.Name, d.Limits()[at].Key
		} else if d.Override != nil {
			i.limit = d.Override.ID
		}
		l.record(ctx, i, d, retry, now)
	}
	denial.EachShadow(d, func(at int) {
		s := &d.Shadow[at]
		l.record(ctx, id{s.Rule.Name, s.Limit.Name, s.Reason(), s.Key, true}, d, s.RetryAfter, now)
	})
}

func (l *Log) record(ctx context.Context, i id, d *mete.Denial, retry time.Duration, now time.Time) {
	l.denials.Add(1)
	s := &l.shards[maphash.String(l.seed, i.key)%shards]
	s.mu.Lock()
	b := s.bursts[i]
	if b == nil {
		if len(s.bursts) >= shardBursts {
			s.mu.Unlock()
			l.unlogged.Add(1)
			return
		}
		b = new(burst)
		i.key = strings.Clone(i.key) // the caller owns the key's memory
		b.address, _ = d.Attributes.Lookup(address)
		s.bursts[i] = b
	}
	b.count, b.retry = b.count+1, retry
	line, due := l.due(b, now)
	s.mu.Unlock()
	if due {
		l.write(ctx, i, line)
	}
}

// due returns the line that the burst must write now, if any. The caller holds the lock of its shard.
func (l *Log) due(b *burst, now time.Time) (line burst, due bool) {
	if b.count == 0 || now.Sub(b.last) < l.config.Interval || !l.rate.admits(l.config.PerSecond, now) {
		return burst{}, false
	}
	line = *b
	b.count, b.last = 0, now
	return line, true
}

// Stats returns the current counts.
func (l *Log) Stats() Stats {
	s := Stats{Lines: l.lines.Load(), Unlogged: l.unlogged.Load(), Denials: l.denials.Load()}
	for i := range l.shards {
		l.shards[i].mu.Lock()
		s.Bursts += len(l.shards[i].bursts)
		l.shards[i].mu.Unlock()
	}
	return s
}

type rate struct {
	mu     sync.Mutex // guards the fields below
	second int64
	lines  int
}

func (r *rate) admits(most int, now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if second := now.Unix(); second != r.second {
		r.second, r.lines = second, 0
	}
	r.lines++
	return r.lines <= most
}
