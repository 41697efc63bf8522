// SPDX-License-Identifier: Apache-2.0

package monitor

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/metehq/mete"
)

// MaxWatches bounds how many functions may watch buckets at a time.
const MaxWatches = 100

// Watches pass the decisions about a bucket to the functions that watch it: a limiter's
// hook tells them every decision.
//
//	watches := new(monitor.Watches)
//	lim, err := mete.New(store, m, mete.Config{OnDecision: watches.Decided})
//	admin, err := httpapi.New(lim, httpapi.Config{Admin: true, Live: httpapi.Live{Watches: watches, …}})
//
// The zero Watches are ready for use, and safe for concurrent use. Without a watch, a
// decision costs them a look at one pointer.
type Watches struct {
	table atomic.Pointer[map[string][]*watch] // by key; nil for none

	mu    sync.Mutex // guards changes, and the field below
	count int
}

// Watch calls f with each decision in which the bucket with that key had a part, and with
// what the decision shows of the bucket: one of its Limits, or of its Shadow. A request
// that an override blocks, or that lacks an attribute, asks no bucket; nor does one that a
// store that does not answer lets through. Peeks are no decisions, nor are changes of a
// bucket by its key.
//
// Any key can be watched, those of charges that requests bring, too. What is said of
// [mete.Config.OnDecision] goes for f: it must not change what it is given, must not
// block, and must not keep it. It must be safe for concurrent use.
//
// f may be called until stop has been called, and after that by decisions that were
// being made then: stop does not wait for these. So it may be called within f, and
// more than once. The error is that there are [MaxWatches] already.
func (ws *Watches) Watch(key string, f func(context.Context, *mete.Decision, *mete.Status)) (stop func(), err error) {
	w := &watch{key: key, call: f}
	if err := ws.add(w); err != nil {
		return nil, err
	}
	return func() { ws.remove(w) }, nil
}

// A watch is one function and what it watches.
type watch struct {
	key  string
	call func(context.Context, *mete.Decision, *mete.Status)
	over atomic.Bool
}

func (ws *Watches) add(w *watch) error {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if ws.count >= MaxWatches {
		return fmt.Errorf("monitor: watch: %d functions watch buckets already, and more may not: stop one", ws.count)
	}
	ws.count++
	table := ws.clone()
	table[w.key] = append(slices.Clone(table[w.key]), w)
	ws.table.Store(&table)
	return nil
}

func (ws *Watches) remove(w *watch) {
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

func (ws *Watches) clone() map[string][]*watch {
	if old := ws.table.Load(); old != nil {
		return maps.Clone(*old)
	}
	return map[string][]*watch{}
}

// Decided calls the functions that watch a bucket with a part in d. It is for
// [mete.Config.OnDecision].
func (ws *Watches) Decided(ctx context.Context, d *mete.Decision) {
	table := ws.table.Load()
	if table == nil {
		return
	}
	for _, statuses := range [][]mete.Status{d.Limits(), d.Shadow} {
		for i := range statuses {
			for _, w := range (*table)[statuses[i].Key] {
				if !w.over.Load() {
					w.call(ctx, d, &statuses[i])
				}
			}
		}
	}
}
