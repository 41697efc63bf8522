// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/store"
)

const (
	// maxUndoing bounds the pending refunds. Beyond it, the oldest are abandoned: their tokens come back by
	// refilling.
	maxUndoing = 10_000

	undoBackoff    = 20 * time.Millisecond
	maxUndoBackoff = 2 * time.Second
)

// An undoing is a pending refund: a part of a take that was denied or failed, or a part of a refund.
type undoing struct {
	refunds         []mete.Refund
	memory, attempt string        // of a take by ID; or memory is a marker
	permanent       bool          // memory is permanent
	full            time.Duration // until the buckets are full
	until           time.Time
}

// An undoer retries refunds until Redis confirms them. It has a goroutine while refunds are pending. The zero
// value is ready for use once store is set.
type undoer struct {
	store *Store

	mu    sync.Mutex // guards the fields below
	queue []undoing
	tried int // refunds of the previous queue in flight
	busy  bool
	lost  int64 // abandoned refunds

	idle    sync.WaitGroup // goroutines of run and of markers
	markers markers
}

// submitOnce submits a refund that was never submitted before.
func (u *undoer) submitOnce(ctx context.Context, todo *undoing, within time.Duration) error {
	err := u.submit(ctx, todo, within)
	if err == nil && todo.attempt == "" && !todo.permanent {
		u.markers.enqueue(todo.memory) // it succeeded at once, so no retry needs the marker
	}
	return err
}

// begin refunds todo, or queues it for retries and returns false.
func (u *undoer) begin(todo undoing, within time.Duration) (done bool) {
	todo.until = time.Now().Add(todo.full)
	if todo.attempt != "" {
		todo.capDeadline() // because its take expires too
	}
	err := u.submitOnce(context.Background(), &todo, within)
	if err == nil {
		return true
	}
	todo.noteFailure(err)
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(u.queue) >= maxUndoing {
		u.queue = u.queue[1:]
		u.lost++
	}
	u.queue = append(u.queue, todo)
	if !u.busy {
		u.busy = true
		u.idle.Go(u.run)
	}
	return false
}

func (u *undoer) run() {
	for backoff := undoBackoff; ; backoff = min(2*backoff, maxUndoBackoff) {
		last := false
		select {
		case <-u.store.ending:
			last = true
		case <-time.After(backoff):
		}
		todo := u.takeDue()
		if len(todo) == 0 {
			return
		}
		for i := range todo {
			err := u.submit(context.Background(), &todo[i], u.store.config.Timeout)
			if err == nil {
				backoff = undoBackoff
			} else {
				todo[i].noteFailure(err)
			}
			u.mu.Lock()
			u.tried--
			if err != nil {
				u.queue = append(u.queue, todo[i])
			}
			u.mu.Unlock()
		}
		if last {
			u.giveUp()
			return
		}
	}
}

func (u *undoer) giveUp() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.lost += int64(len(u.queue))
	u.queue, u.busy = nil, false
}

// takeDue returns the queued refunds that are still useful. If there are none, run ends.
func (u *undoer) takeDue() []undoing {
	u.mu.Lock()
	defer u.mu.Unlock()
	now, todo := time.Now(), u.queue
	todo = slices.DeleteFunc(todo, func(t undoing) bool { return now.After(t.until) })
	u.queue, u.tried = nil, len(todo)
	u.busy = len(todo) > 0
	return todo
}

func (t *undoing) noteFailure(err error) {
	if mete.Spent(err) == mete.MaybeSpent {
		t.capDeadline() // Redis remembers a completed refund for a limited time
	}
}

// capDeadline shortens the deadline of t, so that it ends before Redis expires the memory of a completed refund.
func (t *undoing) capDeadline() {
	if last := time.Now().Add(store.RetryHorizon / 2); last.Before(t.until) {
		t.until = last
	}
}

func (u *undoer) pending() (waiting int, lost int64) {
	u.mu.Lock()
	defer u.mu.Unlock()
	return len(u.queue) + u.tried, u.lost
}
