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

// MaxWatches bounds the concurrent watches.
const MaxWatches = 100

// Watches forwards the decisions about a bucket to the functions that watch it. The limiter's hook feeds it.
//
//	watches := new(monitor.Watches)
//	lim, err := mete.New(store, m, mete.Config{OnDecision: watches.OnDecision})
//	admin, err := httpapi.New(lim, httpapi.Config{Admin: true, Live: httpapi.Live{Watches: watches, …}})
//
// The zero Watches is ready for use. It is safe for concurrent use. Without a watch, a decision costs one pointer
// load.
type Watches struct {
	table atomic.Pointer[map[string][]*watch] // by key; nil if there are no watches

	mu    sync.Mutex // guards changes, and the field below
	count int
}

// Watch calls f for each decision that involves the bucket with the given key, with the bucket's status from
// Limits or Shadow of the decision. These decisions involve no bucket: requests that an override blocks, requests
// that lack an attribute, and requests that pass because the store is unavailable. Peeks and direct changes of a
// bucket are not decisions.
//
// Any key can be watched, including keys of charges in requests. As for [mete.Config.OnDecision], f must not
// block, and must not change or keep its arguments. It must be safe for concurrent use.
//
// Concurrent decisions may still call f after stop returns, because stop does not wait for them. stop may be
// called within f, and more than once. Watch returns an error if there are already [MaxWatches] watches.
func (ws *Watches) Watch(key string, f func(context.Context, *mete.Decision, *mete.Status)) (stop func(), err error) {
	w := &watch{key: key, call: f}
	if err := ws.add(w); err != nil {
		return nil, err
	}
	return func() { ws.remove(w) }, nil
}

type watch struct {
	key     string
	call    func(context.Context, *mete.Decision, *mete.Status)
	stopped atomic.Bool
}

func (ws *Watches) add(w *watch) error {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if ws.count >= MaxWatches {
		return fmt.Errorf("monitor: watch: %d watches are active already: stop one first", ws.count)
	}
	ws.count++
	table := ws.clone()
	table[w.key] = append(slices.Clone(table[w.key]), w)
	ws.table.Store(&table)
	return nil
}

func (ws *Watches) remove(w *watch) {
	if w.stopped.Swap(true) {
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

// OnDecision calls the functions that watch a bucket in d. It is for [mete.Config.OnDecision].
func (ws *Watches) OnDecision(ctx context.Context, d *mete.Decision) {
	table := ws.table.Load()
	if table == nil {
		return
	}
	for _, statuses := range [][]mete.Status{d.Limits(), d.Shadow} {
		for i := range statuses {
			for _, w := range (*table)[statuses[i].Key] {
				if !w.stopped.Load() {
					w.call(ctx, d, &statuses[i])
				}
			}
		}
	}
}
