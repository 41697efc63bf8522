// SPDX-License-Identifier: Apache-2.0

package topkeys

import (
	"fmt"
	"hash/maphash"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
)

// A Tracker counts keys per rule and kind. Create one with [New]. It is safe for concurrent use, starts no
// goroutine and needs no Close.
//
// Recording never blocks, and allocates only for the first records of a rule.
type Tracker struct {
	config Config
	begin  bucket.Instant
	length bucket.Instant // length of a part
	seed   maphash.Seed
	memory memory

	rules   atomic.Pointer[map[string]*rule] // replaced as a whole under mu
	mu      sync.Mutex
	removed Stats // counts of removed rules

	untracked atomic.Uint64 // dropped records of rules beyond MaxRules
}

type rule struct {
	kinds   [kinds]series
	dropped atomic.Uint64
}

// Stats holds the counters of a [Tracker] since its creation, and its size.
type Stats struct {
	Recorded uint64 // counted records
	Dropped  uint64 // dropped records
	Rules    int    // rules with a record
	Keys     int    // keys with a counter, per rule, kind and lane
	Bytes    int64  // memory in use, of MaxBytes
}

// New returns an empty tracker.
func New(config Config, now bucket.Instant) (*Tracker, error) {
	if err := config.validate(); err != nil {
		return nil, fmt.Errorf("topkeys: new: %w", err)
	}
	t := &Tracker{config: config, begin: now, length: bucket.Instant(config.Window / halves / time.Microsecond), seed: maphash.MakeSeed()}
	t.memory.left.Store(MaxBytes)
	t.rules.Store(&map[string]*rule{})
	return t, nil
}

func (t *Tracker) part(at bucket.Instant) int64 { return int64(max(at, 0) / t.length) }

// OnDenial records the keys of limits that denied a request, and of shadow limits that would have denied it. It is
// for [mete.Config.OnDenial].
//
// Denials because of an override, a missing attribute or a store failure have no key to count.
func (t *Tracker) OnDenial(now bucket.Instant, d *mete.Denial) {
	if !d.Allowed {
		t.recordAll(now, KindDenied, d.Limits())
	}
	t.recordAll(now, KindShadow, d.Shadow)
}

// OnNearLimit records the keys of limits that an allowed request nearly reached. It is for [mete.Config.OnNearLimit].
func (t *Tracker) OnNearLimit(now bucket.Instant, d *mete.Denial) {
	for i := range d.Limits() {
		if s := &d.Limits()[i]; s.Near() {
			t.Record(now, KindNear, s.Rule.Name, s.Key, 0)
		}
	}
}

func (t *Tracker) recordAll(now bucket.Instant, kind Kind, statuses []mete.Status) {
	for i := range statuses {
		if s := &statuses[i]; !s.Allowed {
			t.Record(now, kind, s.Rule.Name, s.Key, s.RetryAfter)
		}
	}
}

// Record records a key of a rule, for programs without the hooks. retryAfter is the wait from now. now must come
// from a monotonic clock such as [time.Since]; time that runs backwards is ignored.
func (t *Tracker) Record(now bucket.Instant, kind Kind, rule, key string, retryAfter time.Duration) {
	if kind >= kinds {
		return
	}
	r := (*t.rules.Load())[rule]
	if r == nil {
		if r = t.getOrAdd(rule); r == nil {
			t.untracked.Add(1)
			return
		}
	}
	e := event{key: key, hash: hashOf(t.seed, key), at: now}
	if retryAfter > 0 {
		e.retry = now.Add(retryAfter)
	}
	if !r.kinds[kind].record(t, &e) {
		r.dropped.Add(1)
	}
}

func (t *Tracker) getOrAdd(name string) *rule {
	t.mu.Lock()
	defer t.mu.Unlock()
	old := *t.rules.Load()
	if r := old[name]; r != nil || len(old) >= MaxRules {
		return r
	}
	rules := maps.Clone(old)
	r := new(rule)
	rules[name] = r
	t.rules.Store(&rules)
	return r
}

// Retain removes all rules for which keep returns false. Call it after a policy change. A concurrent record may
// add a removed rule again, until the next call.
func (t *Tracker) Retain(keep func(rule string) bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	rules := maps.Clone(*t.rules.Load())
	for name, r := range rules {
		if keep(name) {
			continue
		}
		delete(rules, name)
		for k := range r.kinds {
			recorded, bytes := r.kinds[k].close()
			t.removed.Recorded += recorded
			t.memory.give(bytes)
		}
		t.removed.Dropped += r.dropped.Load()
	}
	t.rules.Store(&rules)
}

func (t *Tracker) Stats() Stats {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.removed
	s.Dropped += t.untracked.Load()
	for _, r := range *t.rules.Load() {
		of := r.stats()
		s.Recorded += of.Recorded
		s.Dropped += of.Dropped
		s.Keys += of.Keys
		s.Rules++
	}
	s.Bytes = MaxBytes - t.memory.left.Load()
	return s
}

func (r *rule) stats() Stats {
	s := Stats{Dropped: r.dropped.Load()}
	for k := range r.kinds {
		for i := range r.kinds[k].lanes {
			l := r.kinds[k].lanes[i].Load()
			if l == nil {
				continue
			}
			l.mu.Lock()
			s.Recorded += l.recorded
			s.Keys += len(l.current().counters)
			l.mu.Unlock()
		}
	}
	return s
}
