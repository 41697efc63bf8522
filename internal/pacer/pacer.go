// SPDX-License-Identifier: Apache-2.0

// Package pacer spreads a client's requests over the rate limits that a server announces.
//
// A [Pacer] serves one server, or one key of it. Requests pass it in order, at a pace that follows the server's
// answers. It spends the remainder of each announced limit evenly over the time until its reset, and spends measured
// refills as they arrive. Without announced limits it delays no request, except for the waits that the server requests.
//
// The pacer does not simulate a bucket with the announced quota and window. Windows are announced in whole
// seconds, rounded up, so 20 per 200 ms is announced as 20 per second. Most servers announce no window, and
// other clients may share the key. The pacer therefore measures, and trusts only the announced remainder.
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
	// MaxWaiting bounds the requests that wait for one pacer. Excess requests fail with ErrTooMany.
	MaxWaiting = 4096

	// LongestPause is the longest pause. After it, one request probes the server.
	LongestPause = time.Hour

	// firstAnswer is how long the second request waits for the first answer, which contains the limits. Each
	// later request waits that much longer. The same applies after a refusal.
	firstAnswer = time.Second

	// shortPause is the pause after a refusal without a wait. It doubles with each such refusal in a row, up to
	// longPause.
	shortPause = time.Second
	longPause  = time.Minute
)

var (
	// ErrTooLate: the request cannot be sent before its deadline, according to the announced limits.
	ErrTooLate = errors.New("cannot be sent in time")

	// ErrTooMany: MaxWaiting requests are already waiting.
	ErrTooMany = errors.New("too many requests are waiting")
)

// A Pacer delays requests. Use [New]. It is safe for concurrent use, starts no goroutine and needs no Close.
type Pacer struct {
	mu       sync.Mutex // guards the fields below
	waiting  list.List  // of *waiter, next one first
	timer    *time.Timer
	sent     uint64    // requests so far
	inFlight int       // requests without an answer
	last     time.Time // send time of the last request
	window   int       // maximum in flight while probing; 0 for no bound
	quotas   []*quota

	pausedUntil     time.Time
	pausedAt        uint64 // value of sent at the last pause
	untimedRefusals int    // consecutive refusals without a wait
}

type waiter struct {
	pass   chan struct{}
	ticket Ticket
}

// A Ticket identifies a request that has passed. Report each ticket exactly once.
type Ticket struct{ seq uint64 }

// New returns a pacer without knowledge of the server.
func New() *Pacer { return &Pacer{window: 1} }

// Wait returns when the request may be sent. The error is ErrTooMany, ErrTooLate if the deadline (zero for
// none) cannot be met, or ctx's. A retry (again) goes ahead of waiting requests.
func (p *Pacer) Wait(ctx context.Context, deadline time.Time, again bool) (Ticket, error) {
	w, late, err := p.enter(deadline, again)
	if err != nil || w.pass == nil { // no need to wait
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
	return w.ticket, nil // it has already passed
}

// enter lets a request pass or queues it. late is the longest time in the queue, or 0 for no bound.
func (p *Pacer) enter(deadline time.Time, again bool) (w *waiter, late time.Duration, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	w = &waiter{}
	if !deadline.IsZero() {
		if late = deadline.Sub(now); late <= 0 || deadline.Before(p.pausedUntil) {
			return w, 0, fmt.Errorf("%w: the server requires a wait of %v, and the deadline is in %v", ErrTooLate, max(p.pausedUntil.Sub(now), 0), max(late, 0))
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
	// With nothing in flight, no answer can change the delay.
	if late > 0 && delay > late && p.inFlight == 0 {
		return w, 0, fmt.Errorf("%w: the announced limit is used up for %v, and the deadline is in %v", ErrTooLate, delay, late)
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

// leave removes w from the queue. It returns false if w has passed.
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

// advanceLocked lets requests pass that need not wait, and sets the timer for the next one.
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

func (p *Pacer) delayLocked(now time.Time) time.Duration {
	if pause := p.pausedUntil.Sub(now); pause > 0 {
		return pause
	}
	if p.window > 0 && p.inFlight >= p.window {
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
	p.inFlight++
	p.last = now
	w.ticket.seq = p.sent
	for _, q := range p.quotas {
		q.spend()
	}
}

// An Answer describes a response.
type Answer struct {
	Refused   bool                        // status 429 or 503
	Announced []ratelimitfields.Announced // bounded by [ratelimitfields.Read]
	Wait      time.Duration               // requested by the server
	HasWait   bool
}

// RecordAnswer records the answer to a request.
func (p *Pacer) RecordAnswer(t Ticket, a Answer) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	p.inFlight--
	if a.Refused {
		p.pauseLocked(now, t, a)
	} else {
		p.untimedRefusals = 0
	}
	p.learnLocked(now, t, a)
	p.updateWindowLocked(t, a)
	p.advanceLocked(now)
}

// updateWindowLocked bounds the requests in flight. The first answer may announce the limits. If it does not and
// refuses, waiting requests must not leave together after the pause. One probes the server, and each answer then
// allows two more.
func (p *Pacer) updateWindowLocked(t Ticket, a Answer) {
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

// RecordLoss records that a request got no answer. The server may have counted it.
func (p *Pacer) RecordLoss(Ticket) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.inFlight--
	p.advanceLocked(time.Now())
}

// PauseLeft returns the rest of the current pause.
func (p *Pacer) PauseLeft() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return max(time.Until(p.pausedUntil), 0)
}

// IsIdle reports whether the pacer can be discarded: nothing is in flight, no pause is active, and all announced
// windows have ended.
func (p *Pacer) IsIdle() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	if p.inFlight > 0 || p.waiting.Len() > 0 || now.Before(p.pausedUntil) {
		return false
	}
	for _, q := range p.quotas {
		if now.Before(q.bound) {
			return false
		}
	}
	return true
}

// pauseLocked stops all requests for the requested time plus a random delay, so that clients do not return together.
func (p *Pacer) pauseLocked(now time.Time, t Ticket, a Answer) {
	wait := a.Wait
	if wait <= 0 { // a refusal with "now" contains no time either
		if t.seq <= p.pausedAt {
			return // sent before the last pause: the same refusal
		}
		wait = min(shortPause<<min(p.untimedRefusals, 10), longPause)
		p.untimedRefusals++
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

// maxUnmentioned is the number of consecutive answers without a limit after which the limit is removed.
const maxUnmentioned = 64

func (p *Pacer) learnLocked(now time.Time, t Ticket, a Answer) {
	for i := range a.Announced {
		l := &a.Announced[i]
		q := p.quotaLocked(l.Name)
		if q == nil {
			continue
		}
		q.unmentioned = 0
		if a.Refused {
			q.recordRefusal(now, t.seq, p.sent, l, p.pausedUntil)
		} else {
			q.learn(now, t.seq, p.sent, l)
		}
	}
	if len(a.Announced) == 0 {
		return
	}
	kept := p.quotas[:0]
	for _, q := range p.quotas {
		if q.unmentioned++; q.unmentioned <= maxUnmentioned {
			kept = append(kept, q)
		}
	}
	clear(p.quotas[len(kept):])
	p.quotas = kept
}

// quotaLocked returns the limit of that name, or nil if there are too many.
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
