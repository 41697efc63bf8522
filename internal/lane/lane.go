// SPDX-License-Identifier: Apache-2.0

package lane

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/store"
)

// ErrClosed is the error of calls after Close.
var ErrClosed = errors.New("store is closed")

var errLate = fmt.Errorf("no answer in time: %w", context.DeadlineExceeded)

// A Lane sends asks to a server in the order of arrival. While the permitted number of calls is in flight,
// further asks wait and share the next call. A Lane is safe for concurrent use.
type Lane[A Ask] struct {
	all *Lanes[A]

	mu      sync.Mutex // guards the fields below
	queue   []A
	waiting int // asks in the queue, except abandoned ones
	flying  int // calls in flight
	pace    pace
}

// Do sends a and waits for its answer. It returns [Ticket.Err], or a [mete.StoreError] without Op and Store if a
// was not sent, or if ctx or a nonzero within ends first. In that case, an ask that was already sent may have
// spent tokens.
//
// If free is false, a has no answer and must not be reused: a call may still write to it.
func (l *Lane[A]) Do(ctx context.Context, a A, within time.Duration) (free bool, err error) {
	if err := ctx.Err(); err != nil {
		return true, &mete.StoreError{Spent: mete.NotSpent, Err: err}
	}
	t := a.ticket()
	t.sent, t.Err = false, nil
	if (within > 0 || ctx.Done() == nil) && !endsBefore(ctx, within) && l.alone() {
		l.goAlone(a, within)
		return true, t.Err
	}
	if t.done == nil {
		t.done = make(chan struct{}, 1)
	}
	if err := l.submit(a); err != nil {
		return true, &mete.StoreError{Spent: mete.NotSpent, Err: err}
	}
	if err := t.wait(ctx, within); err != nil {
		return l.leave(t, err)
	}
	return true, t.Err
}

// endsBefore reports whether ctx ends sooner than within.
func endsBefore(ctx context.Context, within time.Duration) bool {
	deadline, ok := ctx.Deadline()
	return ok && time.Until(deadline) < within
}

// startFirst reports whether no call is in flight and no ask waits. If so, it reserves the lane's first call for
// [Lane.runInline].
func (l *Lane[A]) alone() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.flying > 0 || len(l.queue) > 0 || l.all.closed.Load() {
		return false
	}
	l.flying++
	l.all.calls.Add(1)
	return true
}

// runInline makes a call for a in the caller's goroutine, which saves two context switches. It cannot be
// interrupted, and takes at most within.
func (l *Lane[A]) goAlone(a A, within time.Duration) {
	defer l.all.calls.Done()
	timeout := l.all.config.Timeout
	if within > 0 {
		timeout = min(timeout, within)
	}
	b := l.all.batches.Get().(Batch[A])
	b.Reset()
	b.Add(a)
	took := b.Run(timeout)
	l.all.batches.Put(b)

	l.mu.Lock()
	defer l.mu.Unlock()
	l.pace.learn(took, l.flying, len(l.queue) > 0)
	if len(l.queue) > 0 {
		l.all.calls.Add(1)
		go l.fly()
	} else {
		l.flying--
	}
}

// enqueue queues a, and starts a sender if another call is permitted.
func (l *Lane[A]) submit(a A) error {
	l.mu.Lock()
	if l.all.closed.Load() {
		l.mu.Unlock()
		return ErrClosed
	}
	if l.waiting >= l.all.config.MaxQueue {
		l.mu.Unlock()
		l.all.refused.Add(1)
		return store.ErrOverloaded
	}
	l.queue = append(l.queue, a)
	l.waiting++
	start := l.flying < l.pace.limit()
	if start {
		l.flying++
		l.all.calls.Add(1)
	}
	l.mu.Unlock()
	if start {
		go l.fly()
	}
	return nil
}

// abandon removes an ask after its caller stopped waiting because of err. If the ask was answered meanwhile, the
// answer counts.
func (l *Lane[A]) leave(t *Ticket, err error) (free bool, _ error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case <-t.done:
		return true, t.Err
	default:
	}
	t.left = true
	if t.sent {
		return false, &mete.StoreError{Spent: mete.MaybeSpent, Err: err}
	}
	l.waiting--
	if gone := len(l.queue) - l.waiting; gone > 64 && gone > l.waiting {
		l.queue = slices.DeleteFunc(l.queue, func(a A) bool { return a.ticket().left })
	}
	return false, &mete.StoreError{Spent: mete.NotSpent, Err: err}
}

// send makes calls until the queue is empty.
func (l *Lane[A]) fly() {
	defer l.all.calls.Done()
	b := l.all.batches.Get().(Batch[A])
	defer l.all.batches.Put(b)
	took := time.Duration(0)
	for l.load(b, took) {
		took = b.Run(l.all.config.Timeout)
		for _, a := range b.Asks() {
			a.ticket().done <- struct{}{}
		}
		runtime.Gosched() // answered callers may ask again and join the next call
	}
}

// fill moves asks from the queue to b. It returns false if there are none or too many calls are in flight: the
// sender then ends. The parameter took is the duration of the previous call.
func (l *Lane[A]) load(b Batch[A], took time.Duration) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if took > 0 {
		l.pace.learn(took, l.flying, len(l.queue) > 0)
		if l.flying > l.pace.limit() {
			l.flying--
			return false
		}
	}
	b.Reset()
	gone, sent := 0, 0
	for _, a := range l.queue {
		if t := a.ticket(); !t.left {
			if sent == l.all.config.MaxBatch || !b.Add(a) {
				break
			}
			t.sent = true
			sent++
		}
		gone++
	}
	l.waiting -= sent
	rest := copy(l.queue, l.queue[gone:])
	clear(l.queue[rest:])
	l.queue = l.queue[:rest]
	if sent == 0 {
		l.flying--
	}
	return sent > 0
}
