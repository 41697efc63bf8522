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

// A transaction that takes from a bucket keeps it locked until its end, possibly for long. A call that meets such
// a bucket would delay all asks in the call, and all asks behind it. So a call waits only briefly for a lock. It
// then finds the locked buckets and continues without them. Asks for these buckets move to the held lane, which
// checks for locks and does not wait for them.
const (
	commonLane = iota
	heldLane
	laneCount
)

const (
	// lockWait is the longest wait for a lock on the common lane; a quarter of the timeout if that is shorter.
	// Calls of other servers lock a bucket for some milliseconds.
	lockWait = 100 * time.Millisecond

	// heldFor is how long a bucket counts as held after it was seen locked. maxHeld bounds the held buckets;
	// any other locked buckets delay their calls.
	heldFor = time.Second
	maxHeld = 1024

	// heldPoll is the interval between two checks of a held bucket, and heldLooks the number of checks that
	// distinguish it from a busy one. heldRound bounds one round of checks.
	heldPoll  = 10 * time.Millisecond
	heldLooks = 4
	heldRound = 50 * time.Millisecond
)

// errHeld is the error of an ask for a locked bucket. It wraps ErrOverloaded, because the store is available to
// other asks.
var errHeld = fmt.Errorf("the bucket is locked by a transaction: %w", store.ErrOverloaded)

type held struct {
	last atomic.Int64 // no bucket is held after this Unix time in nanoseconds
	mu   sync.Mutex
	keys map[string]holding
}

type holding struct {
	until time.Time
	by    holder
}

// A holder is the transaction that has locked a row, or noRow. The holder of a busy bucket changes soon.
type holder int64

// noRow is the holder of a bucket without a row, which a transaction may be inserting.
const noRow holder = 0

func (h *held) mayHold() bool {
	last := h.last.Load()
	return last != 0 && time.Now().UnixNano() < last
}

func (h *held) holdsAny(charges []store.Charge) bool {
	if !h.mayHold() {
		return false
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	now := time.Now()
	return slices.ContainsFunc(charges, func(c store.Charge) bool { return now.Before(h.keys[c.Key].until) })
}

func (h *held) holders(asks []*ask) map[string]holder {
	if !h.mayHold() {
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
