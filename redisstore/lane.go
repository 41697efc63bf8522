// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/metehq/mete"
)

// A lane brings asks to Redis: all of them, or in a cluster those of one slot.
// While as many calls are on the wire as it allows itself, those that arrive wait
// and go together with the next, in their order.
type lane struct {
	store *Store

	mu      sync.Mutex // guards the fields below
	queue   []*ask
	waiting int // asks in the queue that have not left
	flying  int // calls on the wire
	pace    pace
}

// submit puts a into the queue, and has it sent if nothing else would.
func (l *lane) submit(a *ask) error {
	l.mu.Lock()
	if l.store.closed.Load() {
		l.mu.Unlock()
		return errClosed
	}
	if l.waiting >= l.store.config.MaxQueue {
		l.mu.Unlock()
		l.store.counts.refused.Add(1)
		return mete.ErrOverloaded
	}
	l.queue = append(l.queue, a)
	l.waiting++
	start := l.flying < l.pace.limit(l.store.config.MaxInFlight)
	if start {
		l.flying++
		l.store.calls.Add(1)
	}
	l.mu.Unlock()
	if start {
		go l.fly()
	}
	return nil
}

// alone reports whether nothing is on the wire and nothing waits. Then the caller
// has the lane's first call, for [lane.goAlone].
func (l *lane) alone() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.flying > 0 || len(l.queue) > 0 || l.store.closed.Load() {
		return false
	}
	l.flying++
	l.store.calls.Add(1)
	return true
}

// goAlone makes a call for a in the caller's own goroutine, which saves two
// changes of goroutine. It cannot be left early: it takes no longer than within,
// and is for those who wait no longer.
func (l *lane) goAlone(a *ask, within time.Duration) error {
	defer l.store.calls.Done()
	timeout := l.store.config.Timeout
	if within > 0 {
		timeout = min(timeout, within)
	}
	p := programs.Get().(*program)
	p.reset(l.store.config.Prefix, l.store.now())
	p.add(a)
	took := l.store.run(p, timeout)
	programs.Put(p)

	l.mu.Lock()
	l.pace.learn(took, l.flying, len(l.queue) > 0, l.store.config.MaxInFlight)
	if len(l.queue) > 0 {
		l.store.calls.Add(1)
		go l.fly()
	} else {
		l.flying--
	}
	l.mu.Unlock()
	err := a.err
	if err != nil {
		a.release()
	}
	return err
}

// leave takes back an ask that is waited for no longer. Where it has been
// answered in the meantime, that counts.
func (l *lane) leave(a *ask, err error) (answered bool, _ error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case <-a.done:
		return true, a.err
	default:
	}
	a.left = true
	if a.sent {
		return false, &mete.StoreError{Spent: mete.MaybeSpent, Err: err}
	}
	l.waiting--
	if gone := len(l.queue) - l.waiting; gone > 64 && gone > l.waiting {
		l.queue = slices.DeleteFunc(l.queue, func(a *ask) bool { return a.left })
	}
	return false, &mete.StoreError{Spent: mete.NotSpent, Err: err}
}

// fly makes calls until there is nothing to send.
func (l *lane) fly() {
	defer l.store.calls.Done()
	p := programs.Get().(*program)
	defer programs.Put(p)
	took := time.Duration(0)
	for l.load(p, took) {
		took = l.store.run(p, l.store.config.Timeout)
		l.land(p)
		runtime.Gosched() // those who were answered may ask again, and come along
	}
}

// load moves asks from the queue into p, and reports false where there are none:
// or too many others on the wire: then the caller is done. The call before took so long.
func (l *lane) load(p *program, took time.Duration) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	p.reset(l.store.config.Prefix, l.store.now()) // not before an ask that comes along
	if took > 0 {
		l.pace.learn(took, l.flying, len(l.queue) > 0, l.store.config.MaxInFlight)
		if l.flying > l.pace.limit(l.store.config.MaxInFlight) {
			l.flying--
			return false
		}
	}
	n := 0
	for _, a := range l.queue {
		if len(p.asks) == l.store.config.MaxBatch || p.size() > maxKeys {
			break
		}
		if !a.left {
			if !p.add(a) {
				break
			}
			a.sent = true
			l.waiting--
		}
		n++
	}
	rest := copy(l.queue, l.queue[n:])
	clear(l.queue[rest:])
	l.queue = l.queue[:rest]
	if len(p.asks) == 0 {
		l.flying--
		return false
	}
	return true
}

// land tells those who wait.
func (l *lane) land(p *program) {
	for _, a := range p.asks {
		a.done <- struct{}{}
	}
}
