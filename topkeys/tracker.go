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

// A Tracker counts keys, by rule and kind. It is safe for concurrent use, starts no
// goroutine and needs no Close. [New] makes it.
//
// Records never wait for each other nor for a reader, and allocate nothing, but for
// the first ones of a rule.
type Tracker struct {
	config Config
	begin  bucket.Instant
	length bucket.Instant // of a part of time
	seed   maphash.Seed
	memory memory

	rules atomic.Pointer[map[string]*rule] // replaced as a whole, under mu
	mu    sync.Mutex
	gone  Stats // what was counted of rules that are no more

	untracked atomic.Uint64 // records of rules for which there was no room
}

// A rule is what is counted of one rule.
type rule struct {
	kinds   [kinds]series
	dropped atomic.Uint64
}

// Stats are what a [Tracker] has counted since it was made, and how much it keeps.
type Stats struct {
	Recorded uint64 // records that were made
	Dropped  uint64 // records that were not: of any rule, for whatever reason
	Rules    int    // rules with a record
	Keys     int    // keys with a counter at this moment, once for each rule and kind, and for each lane
	Bytes    int64  // of MaxBytes
}

// New returns a tracker that has counted nothing until now.
func New(config Config, now bucket.Instant) (*Tracker, error) {
	if err := config.complete(); err != nil {
		return nil, fmt.Errorf("topkeys: new: %w", err)
	}
	t := &Tracker{config: config, begin: now, length: bucket.Instant(config.Window / halves / time.Microsecond), seed: maphash.MakeSeed()}
	t.memory.left.Store(MaxBytes)
	t.rules.Store(&map[string]*rule{})
	return t, nil
}

// part is the number of the part of time that at is in.
func (t *Tracker) part(at bucket.Instant) int64 { return int64(max(at, 0) / t.length) }

// Denied records the keys of limits that denied a request, and of those that would
// but for the shadow of their rule. It is for [mete.Config.OnDenial].
//
// What an override blocks, lacks an attribute, or is denied because the store does
// not answer, is denied by no limit, and has no key to count.
func (t *Tracker) Denied(now bucket.Instant, d *mete.Denial) {
	if !d.Allowed {
		t.recordAll(now, Denied, d.Limits())
	}
	t.recordAll(now, Shadow, d.Shadow)
}

// Near records the keys of limits that admitted a request and are nearly reached. It
// is for [mete.Config.OnNearLimit].
func (t *Tracker) Near(now bucket.Instant, d *mete.Denial) {
	for i := range d.Limits() {
		if s := &d.Limits()[i]; s.Near() {
			t.Record(now, Near, s.Rule.Name, s.Key, 0)
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

// Record records one key of a rule, for programs that do not have it from a hook.
// What a [List] says of the key's wait is retryAfter from now. Time that runs backwards
// stands still: now is a clock that nobody sets, as that of [time.Since].
func (t *Tracker) Record(now bucket.Instant, kind Kind, rule, key string, retryAfter time.Duration) {
	if kind >= kinds {
		return
	}
	r := (*t.rules.Load())[rule]
	if r == nil {
		if r = t.enter(rule); r == nil {
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

// enter returns the rule of that name, a new one if there is none and room for it.
func (t *Tracker) enter(name string) *rule {
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

// Retain forgets all rules but those that keep says true of: call it when the policy
// has changed. What is being recorded of one in that moment may bring it back, until
// the next time.
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
			t.gone.Recorded += recorded
			t.memory.give(bytes)
		}
		t.gone.Dropped += r.dropped.Load()
	}
	t.rules.Store(&rules)
}

// Stats returns the numbers as they are.
func (t *Tracker) Stats() Stats {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.gone
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
