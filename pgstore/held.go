// SPDX-License-Identifier: Apache-2.0

package pgstore

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/metehq/mete"
)

// A transaction that takes from a bucket keeps it locked until its end, however far
// that is, and a call that meets one such bucket would wait for it with all who are in
// the call, and with all that wait for one. So a call waits for a lock for a moment
// only. Then it finds out which buckets it is about, and goes on without them: those
// who ask for these go a way of their own, where locks are looked at and not waited
// for.
const (
	commonWay = iota
	heldWay
	ways
)

const (
	// lockWait is the longest that a call on the common way waits for a lock, or a
	// quarter of its time. Calls of other servers lock a bucket for some milliseconds.
	lockWait = 100 * time.Millisecond

	// heldFor is how long after it was last seen so a bucket counts as held, and
	// maxHeld how many may at a time. Others hold up their calls.
	heldFor = time.Second
	maxHeld = 1024

	// heldPoll is the time between two looks at one, and heldLooks how many looks
	// tell one from a bucket that is only busy.
	heldPoll  = 10 * time.Millisecond
	heldLooks = 4
)

// errHeld is about a bucket that somebody keeps locked, and was not waited for. It says
// nothing about the store: others are served meanwhile.
var errHeld = fmt.Errorf("the bucket is locked by a transaction: %w", mete.ErrOverloaded)

// held are the keys of such buckets.
type held struct {
	some  atomic.Bool
	mu    sync.Mutex
	until map[string]time.Time
}

// any reports whether one of the buckets is held.
func (h *held) any(charges []mete.Charge) bool {
	if !h.some.Load() {
		return false
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	now := time.Now()
	return slices.ContainsFunc(charges, func(c mete.Charge) bool { return now.Before(h.until[c.Key]) })
}

// of returns the keys that the asks need of those that are held.
func (h *held) of(asks []*ask) (keys []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := time.Now()
	for _, a := range asks {
		for i := range a.charges {
			if now.Before(h.until[a.charges[i].Key]) {
				keys = append(keys, a.charges[i].Key)
			}
		}
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

func (h *held) add(keys ...string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := time.Now()
	maps.DeleteFunc(h.until, func(_ string, until time.Time) bool { return !now.Before(until) })
	if h.until == nil {
		h.until = make(map[string]time.Time)
	}
	for _, k := range keys {
		if _, known := h.until[k]; known || len(h.until) < maxHeld {
			h.until[k] = now.Add(heldFor)
		}
	}
	h.some.Store(len(h.until) > 0)
}

func (h *held) remove(keys ...string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, k := range keys {
		delete(h.until, k)
	}
	h.some.Store(len(h.until) > 0)
}
