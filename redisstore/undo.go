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
	// maxUndoing bounds the refunds that wait for Redis to come back. Where there
	// are more, the oldest are given up: what they would have given back comes
	// back by refilling.
	maxUndoing = 10_000

	undoBackoff    = 20 * time.Millisecond
	maxUndoBackoff = 2 * time.Second
)

// An undoing is what has to be given back: a part of a take that came to nothing, or
// of a refund.
type undoing struct {
	refunds         []mete.Refund
	memory, attempt string        // of a take by ID; else where it is remembered that this is done
	named           bool          // memory is that of a refund by ID, and stays
	full            time.Duration // from then on the buckets are full anyway
	until           time.Time
}

// An undoer gives back, as often as it takes. It has a goroutine while there is
// something to do. The zero undoer is ready for use once it has its store.
type undoer struct {
	store *Store

	mu    sync.Mutex // guards the fields below
	queue []undoing
	tried int // of the queue before, which are on their way
	busy  bool
	lost  int64 // that were given up

	idle    sync.WaitGroup // run, and those of markers
	markers markers
}

// once gives back within a time, where nobody has tried it before.
func (u *undoer) once(ctx context.Context, todo *undoing, within time.Duration) error {
	err := u.ask(ctx, todo, within)
	if err == nil && todo.attempt == "" && !todo.named {
		u.markers.drop(todo.memory) // it was tried once, and will not be again
	}
	return err
}

// begin gives back within a time, or sees to it later and reports false.
func (u *undoer) begin(todo undoing, within time.Duration) (done bool) {
	todo.until = time.Now().Add(todo.full)
	if todo.attempt != "" {
		todo.expire() // as its take will be forgotten
	}
	err := u.once(context.Background(), &todo, within)
	if err == nil {
		return true
	}
	todo.failed(err)
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

// run works off the queue.
func (u *undoer) run() {
	for backoff := undoBackoff; ; backoff = min(2*backoff, maxUndoBackoff) {
		last := false
		select {
		case <-u.store.ending:
			last = true
		case <-time.After(backoff):
		}
		todo := u.due()
		if len(todo) == 0 {
			return
		}
		for i := range todo {
			err := u.ask(context.Background(), &todo[i], u.store.config.Timeout)
			if err == nil {
				backoff = undoBackoff
			} else {
				todo[i].failed(err)
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

// giveUp is the end of run where the store is closed.
func (u *undoer) giveUp() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.lost += int64(len(u.queue))
	u.queue, u.busy = nil, false
}

// due takes what is in the queue and still worth it. Where there is nothing, run
// is over.
func (u *undoer) due() []undoing {
	u.mu.Lock()
	defer u.mu.Unlock()
	now, todo := time.Now(), u.queue
	todo = slices.DeleteFunc(todo, func(t undoing) bool { return now.After(t.until) })
	u.queue, u.tried = nil, len(todo)
	u.busy = len(todo) > 0
	return todo
}

// failed is what follows an attempt that failed.
func (t *undoing) failed(err error) {
	if mete.Spent(err) == mete.MaybeSpent {
		t.expire() // it may have been done, and Redis remembers that for a time
	}
}

// expire has t given up before Redis forgets that it has been done.
func (t *undoing) expire() {
	if last := time.Now().Add(store.RetryHorizon / 2); last.Before(t.until) {
		t.until = last
	}
}

// pending is how much is still to be given back, and how much never will be.
func (u *undoer) pending() (waiting int, lost int64) {
	u.mu.Lock()
	defer u.mu.Unlock()
	return len(u.queue) + u.tried, u.lost
}
