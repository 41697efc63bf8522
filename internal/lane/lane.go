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
// later asks wait and share the next call. A Lane is safe for concurrent use.
type Lane[A Ask] struct {
	lanes *Lanes[A]

	mu       sync.Mutex // guards the fields below
	queue    []A
	waiting  int // asks in the queue, except abandoned ones
	inFlight int // calls in flight
	pace     pace
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
	if (within > 0 || ctx.Done() == nil) && !endsBefore(ctx, within) && l.startFirst() {
		l.runInline(a, within)
		return true, t.Err
	}
	if t.done == nil {
		t.done = make(chan struct{}, 1)
	}
	if err := l.enqueue(a); err != nil {
		return true, &mete.StoreError{Spent: mete.NotSpent, Err: err}
	}
	if err := t.wait(ctx, within); err != nil {
		return l.abandon(t, err)
	}
	return true, t.Err
}

func endsBefore(ctx context.Context, within time.Duration) bool {
	deadline, ok := ctx.Deadline()
	return ok && time.Until(deadline) < within
}

// startFirst reports whether no call is in flight and no ask waits. If so, it reserves the lane's first call for
// [Lane.runInline].
func (l *Lane[A]) startFirst() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.inFlight > 0 || len(l.queue) > 0 || l.lanes.closed.Load() {
		return false
	}
	l.inFlight++
	l.lanes.calls.Add(1)
	return true
}

// runInline makes a call for a in the caller's goroutine, which saves two context switches. It cannot be
// interrupted, and takes at most within.
func (l *Lane[A]) runInline(a A, within time.Duration) {
	defer l.lanes.calls.Done()
	timeout := l.lanes.config.Timeout
	if within > 0 {
		timeout = min(timeout, within)
	}
	b := l.lanes.batches.Get().(Batch[A])
	b.Reset()
	b.Add(a)
	took := b.Run(timeout)
	l.lanes.batches.Put(b)

	l.mu.Lock()
	defer l.mu.Unlock()
	l.pace.observe(took, l.inFlight, len(l.queue) > 0)
	if len(l.queue) > 0 {
		l.lanes.calls.Add(1)
		go l.send()
	} else {
		l.inFlight--
	}
}

// enqueue queues a, and starts a sender if another call is permitted.
func (l *Lane[A]) enqueue(a A) error {
	l.mu.Lock()
	if l.lanes.closed.Load() {
		l.mu.Unlock()
		return ErrClosed
	}
	if l.waiting >= l.lanes.config.MaxQueue {
		l.mu.Unlock()
		l.lanes.refused.Add(1)
		return store.ErrOverloaded
	}
	l.queue = append(l.queue, a)
	l.waiting++
	start := l.inFlight < l.pace.limit()
	if start {
		l.inFlight++
		l.lanes.calls.Add(1)
	}
	l.mu.Unlock()
	if start {
		go l.send()
	}
	return nil
}

// abandon removes an ask after its caller stopped waiting because of err. If the ask already has an answer, that
// answer counts.
func (l *Lane[A]) abandon(t *Ticket, err error) (free bool, _ error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case <-t.done:
		return true, t.Err
	default:
	}
	t.abandoned = true
	if t.sent {
		return false, &mete.StoreError{Spent: mete.MaybeSpent, Err: err}
	}
	l.waiting--
	if gone := len(l.queue) - l.waiting; gone > 64 && gone > l.waiting {
		l.queue = slices.DeleteFunc(l.queue, func(a A) bool { return a.ticket().abandoned })
	}
	return false, &mete.StoreError{Spent: mete.NotSpent, Err: err}
}

// send makes calls until the queue is empty.
func (l *Lane[A]) send() {
	defer l.lanes.calls.Done()
	b := l.lanes.batches.Get().(Batch[A])
	defer l.lanes.batches.Put(b)
	took := time.Duration(0)
	for l.fill(b, took) {
		took = b.Run(l.lanes.config.Timeout)
		for _, a := range b.Asks() {
			a.ticket().done <- struct{}{}
		}
		runtime.Gosched() // answered callers may ask again and join the next call
	}
}

// fill moves asks from the queue to b. It returns false if there are none or too many calls are in flight: the
// sender then ends. The parameter took is the duration of the previous call.
func (l *Lane[A]) fill(b Batch[A], took time.Duration) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if took > 0 {
		l.pace.observe(took, l.inFlight, len(l.queue) > 0)
		if l.inFlight > l.pace.limit() {
			l.inFlight--
			return false
		}
	}
	b.Reset()
	gone, sent := 0, 0
	for _, a := range l.queue {
		if t := a.ticket(); !t.abandoned {
			if sent == l.lanes.config.MaxBatch || !b.Add(a) {
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
		l.inFlight--
	}
	return sent > 0
}
