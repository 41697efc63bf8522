// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"context"
	"errors"
	"runtime"
	"strings"
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

var programs = sync.Pool{New: func() any { return new(program) }}

// run makes one call, and answers the asks. Where Redis cannot take them
// together they go one by one.
func (s *Store) run(p *program, timeout time.Duration) time.Duration {
	took, err := s.call(p, timeout)
	alone := false
	switch {
	case err == nil:
	case len(p.asks) > 1 && (isTryAgain(err) || isWrongType(err)):
		alone = true
	default:
		p.fail(err)
	}
	var gone error
	for _, a := range p.asks {
		switch {
		case !alone && !a.again:
		case gone != nil: // it was not asked
			a.err = &mete.StoreError{Spent: mete.NotSpent, Err: gone}
		default:
			gone = s.runAlone(p, a, timeout)
		}
		a.again = false
	}
	return took
}

// runAlone makes a call for a, which is one of p's. It returns an error where
// there is no use in making others.
func (s *Store) runAlone(p *program, a *ask, timeout time.Duration) (gone error) {
	one := programs.Get().(*program)
	defer programs.Put(one)
	one.reset(p.prefix, p.now)
	one.add(a)
	a.again = false
	_, err := s.call(one, timeout)
	switch {
	case err != nil:
		if a.err = err; mete.Spent(err) == mete.MaybeSpent {
			return errors.Unwrap(err)
		}
	case a.again:
		a.err = errAnswer("blames no key that there is", "!")
	}
	return nil
}

// call makes the call that p is.
func (s *Store) call(p *program, timeout time.Duration) (took time.Duration, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	start := time.Now()
	keys, args := p.encode()
	text, err := s.script.Exec(ctx, s.client, keys, args).ToString()
	if err == nil && text == "?" { // a state is not that plain
		p.plain = false
		keys, args = p.encode()
		text, err = s.script.Exec(ctx, s.client, keys, args).ToString()
	}
	took = time.Since(start)
	s.counts.call(len(p.asks), took, err)
	switch {
	case err != nil:
		return took, storeError(err)
	case strings.HasPrefix(text, "!"):
		p.spoiled(text[1:])
	default:
		p.answer(text)
	}
	return took, nil
}
