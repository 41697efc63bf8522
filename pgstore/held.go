// SPDX-License-Identifier: Apache-2.0

package pgstore

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/metehq/mete/store"
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
	// tell one from a bucket that is only busy. heldRound is how long one goes on.
	heldPoll  = 10 * time.Millisecond
	heldLooks = 4
	heldRound = 50 * time.Millisecond
)

// errHeld is about a bucket that somebody keeps locked, and was not waited for. It says
// nothing about the store: others are served meanwhile.
var errHeld = fmt.Errorf("the bucket is locked by a transaction: %w", store.ErrOverloaded)

// held are the keys of such buckets.
type held struct {
	last atomic.Int64 // until when any may be held, as a Unix time in nanoseconds
	mu   sync.Mutex
	keys map[string]holding
}

type holding struct {
	until time.Time
	by    holder
}

// A holder is the transaction that has a row locked, or noRow. A bucket that is only
// busy is seen to have another one soon.
type holder int64

// noRow is of a bucket that has no row, and that somebody may be about to make.
const noRow holder = 0

func (h *held) some() bool {
	last := h.last.Load()
	return last != 0 && time.Now().UnixNano() < last
}

// any reports whether one of the buckets is held.
func (h *held) any(charges []store.Charge) bool {
	if !h.some() {
		return false
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	now := time.Now()
	return slices.ContainsFunc(charges, func(c store.Charge) bool { return now.Before(h.keys[c.Key].until) })
}

// of returns who holds what the asks need.
func (h *held) of(asks []*ask) map[string]holder {
	if !h.some() {
		return nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	now, known := time.Now(), map[string]holder{}
	for _, a := range asks {
		for i := range a.charges {
			key := a.charges[i].Key
			if was := h.keys[key]; now.Before(was.until) {
				known[key] = was.by
			}
		}
	}
	return known
}

func (h *held) add(keys map[string]holder) {
	if len(keys) == 0 {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	now := time.Now()
	maps.DeleteFunc(h.keys, func(_ string, was holding) bool { return !now.Before(was.until) })
	if h.keys == nil {
		h.keys = make(map[string]holding)
	}
	until := now.Add(heldFor)
	for k, by := range keys {
		if _, known := h.keys[k]; known || len(h.keys) < maxHeld {
			h.keys[k] = holding{until, by}
		}
	}
	h.last.Store(until.UnixNano())
}

func (h *held) remove(keys []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, k := range keys {
		delete(h.keys, k)
	}
	if len(h.keys) == 0 {
		h.last.Store(0)
	}
}
