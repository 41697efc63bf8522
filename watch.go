// SPDX-License-Identifier: Apache-2.0

package mete

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
)

// MaxWatches bounds how many functions may watch buckets of one [Limiter] at a time.
const MaxWatches = 100

// Watch calls f with each decision of Take, TakeUpTo, Wait, Reserve and Charge in which
// the bucket with that key had a part, after [Config.OnDecision], and with what the
// decision shows of the bucket: one of its Limits, or of its Shadow. A request that an
// override blocks, or that lacks an attribute, asks no bucket; nor does one that a
// store that does not answer lets through. Peeks are no decisions, nor is what
// [Limiter.ResetBucket] and [Limiter.TakeBucket] do.
//
// Any key can be watched, those of charges that requests bring, too. What is said of
// OnDecision goes for f: it must not change what it is given, must not block, and must
// not keep it. It must be safe for concurrent use.
//
// f may be called until stop has been called, and after that by decisions that were
// being made then: stop does not wait for these. So it may be called within f, and
// more than once. The error is that there are [MaxWatches] already.
//
// A limiter that nobody watches does not spend more than a look at one pointer on this.
func (l *Limiter) Watch(key string, f func(context.Context, *Decision, *Status)) (stop func(), err error) {
	w := &watch{key: key, call: f}
	if err := l.watches.add(w); err != nil {
		return nil, err
	}
	return func() { l.watches.remove(w) }, nil
}

// A watch is one function and what it watches.
type watch struct {
	key  string
	call func(context.Context, *Decision, *Status)
	over atomic.Bool
}

// watches are all functions that watch. Decisions read the table; whoever changes it
// makes another one.
type watches struct {
	table atomic.Pointer[map[string][]*watch] // by key; nil for none

	mu    sync.Mutex // guards changes, and the field below
	count int
}

func (ws *watches) add(w *watch) error {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if ws.count >= MaxWatches {
		return fmt.Errorf("mete: watch: %d functions watch buckets already, and more may not: stop one", ws.count)
	}
	ws.count++
	table := ws.clone()
	table[w.key] = append(slices.Clone(table[w.key]), w)
	ws.table.Store(&table)
	return nil
}

func (ws *watches) remove(w *watch) {
	if w.over.Swap(true) {
		return
	}
	ws.mu.Lock()
	defer ws.mu.Unlock()
	ws.count--
	if ws.count == 0 {
		ws.table.Store(nil)
		return
	}
	table := ws.clone()
	rest := slices.DeleteFunc(slices.Clone(table[w.key]), func(other *watch) bool { return other == w })
	if table[w.key] = rest; len(rest) == 0 {
		delete(table, w.key)
	}
	ws.table.Store(&table)
}

func (ws *watches) clone() map[string][]*watch {
	if old := ws.table.Load(); old != nil {
		return maps.Clone(*old)
	}
	return map[string][]*watch{}
}

// tell calls those who watch a bucket that had a part in d. They get a copy of it, as
// the hooks do.
func (l *Limiter) tell(ctx context.Context, s *scratch, d *Decision, table map[string][]*watch) {
	told := false
	show := func(key string, status *Status) {
		for _, w := range table[key] {
			if w.over.Load() {
				continue
			}
			if !told {
				s.seen, told = *d, true
			}
			w.call(ctx, &s.seen, status)
		}
	}
	s.denial.Keys = l.shownKeys(s.denial.Keys[:0], s, d)
	for i := range d.Limits {
		show(s.denial.Keys[i], &d.Limits[i])
	}
	for i := range d.Shadow {
		show(s.matches[s.enforced+i].Key, &d.Shadow[i])
	}
	s.seen = Decision{}
	s.denial.forget()
}
