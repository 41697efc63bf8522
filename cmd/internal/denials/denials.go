// SPDX-License-Identifier: Apache-2.0

// Package denials logs who is denied: the first denial of a key at once, and then
// at most one line in each interval, with the number of denials that it stands
// for. Keys are hashed and addresses cut to their network, unless it is told to
// show them.
//
// All of it is bounded: the lines in a second, and the keys that are remembered.
// What finds no room is counted, and nobody who is denied waits for the log.
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
	// MaxBursts bounds the keys that are remembered. The denials of others are in
	// one line for all of them.
	MaxBursts = shards * shardBursts

	shards      = 8
	shardBursts = 512
)

// A Config are the settings of a [Log].
type Config struct {
	Logger    *slog.Logger  // required; it should not block
	Interval  time.Duration // between two lines of one key, above 0
	PerSecond int           // the most lines in a second, above 0, but for the one of all others
	Raw       bool          // show keys and addresses as they are
	Key       []byte        // of the hashes; empty: a random one
}

// A Log logs denials. It is made by [New] and safe for concurrent use.
type Log struct {
	config Config
	seed   maphash.Seed
	shards [shards]shard
	rate   rate

	denials, lines, unlogged atomic.Uint64
	reported                 uint64 // of unlogged, in a line; for who sweeps
	reportedAt               time.Time
}

// Stats count what a log was told.
type Stats struct {
	Denials  uint64 // that it was told of
	Lines    uint64 // that they became
	Unlogged uint64 // of the denials, those of keys for which there was no room
	Bursts   int    // keys that are remembered
}

// An id is what the denials of one burst have in common.
type id struct {
	rule, limit, reason, key string
	shadow                   bool
}

// A burst are denials of one key.
type burst struct {
	count   uint64    // that are in no line yet
	last    time.Time // when there was a line; zero for never
	address string    // of the first of them; empty: unknown
	retry   time.Duration
}

type shard struct {
	mu     sync.Mutex // guards bursts
	bursts map[id]*burst
}

// New returns a log. [Log.Run] writes what is left of bursts when they are over.
func New(c Config) *Log {
	if len(c.Key) == 0 {
		c.Key = make([]byte, 32)
		_, _ = rand.Read(c.Key) // it never fails
	}
	l := &Log{config: c, seed: maphash.MakeSeed()}
	for i := range l.shards {
		l.shards[i].bursts = map[id]*burst{}
	}
	return l
}

var address, _ = policy.ParseAttribute("ip:address")

// Record is told of denials as [mete.Config.OnDenial]. Where the store could not
// answer and the rule is closed, that is not one: no limit was exceeded.
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
		l.record(ctx, id{s.Rule.Name, s.Limit.Name, s.Limit.Reason, s.Key, true}, d, s.RetryAfter, now)
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
		i.key = strings.Clone(i.key) // the caller's is part of the decision
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

// due reports whether the burst has a line to write now, and returns it as it is
// then. Its shard must be locked.
func (l *Log) due(b *burst, now time.Time) (line burst, due bool) {
	if b.count == 0 || now.Sub(b.last) < l.config.Interval || !l.rate.admits(l.config.PerSecond, now) {
		return burst{}, false
	}
	line = *b
	b.count, b.last = 0, now
	return line, true
}

// Stats returns the counts as they are.
func (l *Log) Stats() Stats {
	s := Stats{Lines: l.lines.Load(), Unlogged: l.unlogged.Load(), Denials: l.denials.Load()}
	for i := range l.shards {
		l.shards[i].mu.Lock()
		s.Bursts += len(l.shards[i].bursts)
		l.shards[i].mu.Unlock()
	}
	return s
}

// A rate bounds the lines of each second.
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
