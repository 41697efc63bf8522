// SPDX-License-Identifier: Apache-2.0

// Package pacer spreads a client's requests over what a server says it may send.
//
// A [Pacer] stands for one server, or one key of it. Requests pass it one by one,
// in order, at a pace that follows the answers: what each announced limit has
// left is spent evenly over the time it has to last, and what is seen to come
// back meanwhile is spent as it comes. A server that announces nothing is not
// paced, but whatever asks to wait is obeyed.
//
// Why not a bucket with the announced quota and window: windows are announced in
// whole seconds, rounded up, so that 20 a fifth of a second read 20 a second;
// most servers announce no window at all; and others may share the key. So the
// pacer measures. All it believes of an answer is how much is left now.
package pacer

import (
	"container/list"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/metehq/mete/internal/ratelimitfields"
)

const (
	// MaxWaiting bounds the requests that wait for one pacer. More are refused.
	MaxWaiting = 4096

	// LongestPause is how long a pacer believes that nothing may be sent. Then one
	// request goes to see whether that is still so.
	LongestPause = time.Hour

	// firstAnswer is how long the second request waits for the first answer,
	// which says what the server allows; further ones as long again, each. So it is
	// after a refusal.
	firstAnswer = time.Second

	// shortPause is the pause after a refusal that does not say how long to wait,
	// or not at all.
	// It doubles with each one in a row, up to longPause.
	shortPause = time.Second
	longPause  = time.Minute
)

var (
	// ErrTooLate: what is known says that the request cannot be sent in time.
	ErrTooLate = errors.New("cannot be sent in time")

	// ErrTooMany: MaxWaiting requests wait already.
	ErrTooMany = errors.New("too many requests are waiting")
)

// A Pacer lets requests pass. It is made by [New], is safe for concurrent use,
// and has no goroutine and nothing to close.
type Pacer struct {
	mu      sync.Mutex // guards the fields below
	waiting list.List  // of *waiter, the next one first
	timer   *time.Timer
	sent    uint64    // requests so far
	flying  int       // those that are not answered
	last    time.Time // when the last one was sent
	window  int       // how many may be under way, while that is being found out; 0: any
	quotas  []*quota

	pausedUntil time.Time
	pausedAt    uint64 // sent at the time of the last pause
	bare        int    // refusals in a row that did not say how long to wait
}

// A waiter is a request that waits.
type waiter struct {
	pass   chan struct{}
	ticket Ticket
}

// A Ticket is a request that has passed. Each one is answered once.
type Ticket struct{ seq uint64 }

// New returns a pacer that knows nothing yet.
func New() *Pacer { return &Pacer{window: 1} }

// Wait returns when the request may be sent, or with an error where it may not:
// ErrTooMany; ErrTooLate, where that would not be before deadline (zero: there is
// none); ctx's own. A request that is sent again goes before those that wait.
func (p *Pacer) Wait(ctx context.Context, deadline time.Time, again bool) (Ticket, error) {
	w, late, err := p.enter(deadline, again)
	if err != nil || w.pass == nil { // it need not wait
		return w.ticket, err
	}
	var stop <-chan time.Time
	if late > 0 {
		timer := time.NewTimer(late)
		defer timer.Stop()
		stop = timer.C
	}
	select {
	case <-w.pass:
		return w.ticket, nil
	case <-ctx.Done():
		err = context.Cause(ctx)
	case <-stop:
		err = ErrTooLate
	}
	if p.leave(w) {
		return Ticket{}, err
	}
	return w.ticket, nil // it was let through meanwhile
}

// enter lets a request pass, or puts it into the queue. late is how long it may
// wait there, 0 for as long as need be.
func (p *Pacer) enter(deadline time.Time, again bool) (w *waiter, late time.Duration, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	w = &waiter{}
	if !deadline.IsZero() {
		if late = deadline.Sub(now); late <= 0 || deadline.Before(p.pausedUntil) {
			return w, 0, fmt.Errorf("%w: %v is left, and the server asks to wait %v", ErrTooLate, max(late, 0), max(p.pausedUntil.Sub(now), 0))
		}
	}
	if p.waiting.Len() >= MaxWaiting {
		return w, 0, ErrTooMany
	}
	delay := p.delayLocked(now)
	if p.waiting.Len() == 0 && delay == 0 {
		p.sendLocked(w, now)
		return w, 0, nil
	}
	// With nothing under way there is no answer to come that might say otherwise.
	if late > 0 && delay > late && p.flying == 0 {
		return w, 0, fmt.Errorf("%w: %v is left, and what the server announced is used up for %v", ErrTooLate, late, delay)
	}
	w.pass = make(chan struct{})
	if again {
		p.waiting.PushFront(w)
	} else {
		p.waiting.PushBack(w)
	}
	p.advanceLocked(now)
	return w, late, nil
}

// leave takes w out of the queue. It is false where w has passed.
func (p *Pacer) leave(w *waiter) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for e := p.waiting.Front(); e != nil; e = e.Next() {
		if e.Value == w {
			p.waiting.Remove(e)
			p.advanceLocked(time.Now())
			return true
		}
	}
	return false
}

// advanceLocked lets pass whoever may, and sets the timer for the next one.
func (p *Pacer) advanceLocked(now time.Time) {
	for p.waiting.Len() > 0 {
		if delay := p.delayLocked(now); delay > 0 {
			p.setTimerLocked(delay)
			return
		}
		w := p.waiting.Remove(p.waiting.Front()).(*waiter)
		p.sendLocked(w, now)
		close(w.pass)
	}
	if p.timer != nil {
		p.timer.Stop()
	}
}

func (p *Pacer) setTimerLocked(delay time.Duration) {
	if p.timer != nil {
		p.timer.Reset(delay)
		return
	}
	p.timer = time.AfterFunc(delay, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.advanceLocked(time.Now())
	})
}

// delayLocked is how long the next request has to wait; 0 is not at all.
func (p *Pacer) delayLocked(now time.Time) time.Duration {
	if pause := p.pausedUntil.Sub(now); pause > 0 {
		return pause
	}
	if p.window > 0 && p.flying >= p.window {
		return max(p.last.Add(firstAnswer).Sub(now), 0)
	}
	var delay time.Duration
	for _, q := range p.quotas {
		delay = max(delay, q.delay(now, p.sent))
	}
	return min(delay, LongestPause)
}

func (p *Pacer) sendLocked(w *waiter, now time.Time) {
	p.sent++
	p.flying++
	p.last = now
	w.ticket.seq = p.sent
	for _, q := range p.quotas {
		q.spend()
	}
}

// An Answer is what came back.
type Answer struct {
	Refused   bool                        // 429 or 503
	Announced []ratelimitfields.Announced // as [ratelimitfields.Read] bounds it
	Wait      time.Duration               // asked for
	HasWait   bool
}

// Answered tells the pacer what came back.
func (p *Pacer) Answered(t Ticket, a Answer) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	p.flying--
	if a.Refused {
		p.pauseLocked(now, t, a)
	} else {
		p.bare = 0
	}
	p.learnLocked(now, t, a)
	p.windowLocked(t, a)
	p.advanceLocked(now)
}

// windowLocked bounds what is under way. The first answer says what the server
// allows, if it does. Where it does not and refuses, those that wait out the pause
// do not leave together: one goes to see, and for each that comes back two go.
func (p *Pacer) windowLocked(t Ticket, a Answer) {
	switch {
	case len(p.quotas) > 0 || !a.Refused && p.pausedAt == 0:
		p.window = 0
	case a.Refused:
		p.window = 1
	case p.window > 0 && t.seq > p.pausedAt:
		if p.window++; p.window > MaxWaiting {
			p.window = 0
		}
	}
}

// Lost tells the pacer that there is no answer. It may have been counted.
func (p *Pacer) Lost(Ticket) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.flying--
	p.advanceLocked(time.Now())
}

// PausedFor is how long nothing will be sent.
func (p *Pacer) PausedFor() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return max(time.Until(p.pausedUntil), 0)
}

// Idle reports whether forgetting the pacer would make no difference worth
// mentioning: nothing is under way, no pause is in force, and what was announced
// has passed.
func (p *Pacer) Idle() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	if p.flying > 0 || p.waiting.Len() > 0 || now.Before(p.pausedUntil) {
		return false
	}
	for _, q := range p.quotas {
		if now.Before(q.bound) {
			return false
		}
	}
	return true
}

// pauseLocked stops everything for as long as the server asks, and a little
// longer, lest all who were told the same return together.
func (p *Pacer) pauseLocked(now time.Time, t Ticket, a Answer) {
	wait := a.Wait
	if wait <= 0 { // nor does "now" say when, in a refusal
		if t.seq <= p.pausedAt {
			return // sent before the last pause: the same refusal again
		}
		wait = min(shortPause<<min(p.bare, 10), longPause)
		p.bare++
		for _, l := range a.Announced {
			if l.Remaining == 0 {
				wait = max(wait, l.Reset)
			}
		}
	}
	wait = min(wait, LongestPause)
	wait += rand.N(min(wait/10, time.Second) + 1)
	if until := now.Add(wait); until.After(p.pausedUntil) {
		p.pausedUntil = until
	}
	p.pausedAt = p.sent
}

// maxQuiet is how many answers may leave a limit out before it is forgotten.
const maxQuiet = 64

// learnLocked updates what is known of each announced limit.
func (p *Pacer) learnLocked(now time.Time, t Ticket, a Answer) {
	for i := range a.Announced {
		l := &a.Announced[i]
		q := p.quotaLocked(l.Name)
		if q == nil {
			continue
		}
		q.quiet = 0
		if a.Refused {
			q.refused(now, t.seq, p.sent, l, p.pausedUntil)
		} else {
			q.learn(now, t.seq, p.sent, l)
		}
	}
	if len(a.Announced) == 0 {
		return
	}
	kept := p.quotas[:0]
	for _, q := range p.quotas {
		if q.quiet++; q.quiet <= maxQuiet {
			kept = append(kept, q)
		}
	}
	clear(p.quotas[len(kept):])
	p.quotas = kept
}

// quotaLocked returns the limit of that name; nil where there are too many.
func (p *Pacer) quotaLocked(name string) *quota {
	for _, q := range p.quotas {
		if q.name == name {
			return q
		}
	}
	if len(p.quotas) == ratelimitfields.MaxAnnounced {
		return nil
	}
	q := &quota{name: name}
	p.quotas = append(p.quotas, q)
	return q
}
