// SPDX-License-Identifier: Apache-2.0

package mete

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/store"
)

// ErrSlotEnded: a slot of the request has ended or was released, so another request may hold it.
var ErrSlotEnded = errors.New("mete: slot ended")

// Slots are the slots that an admitted request holds under its concurrency limits: see [Decision.Slots]. The request holds
// them until [Slots.Release], and for one lease at most unless it renews them. A nil *Slots holds none, and all methods
// accept it. Slots are safe for concurrent use.
type Slots struct {
	limiter *Limiter
	id      bucket.SlotID
	lease   time.Duration // the shortest
	within  time.Duration // of a store call

	mu    sync.Mutex  // guards the fields below, and serializes releases
	held  heldSlots   // empty after the release
	timer *time.Timer // of KeepAlive

	first [1]store.Refund // the memory of held for a request with one slot
}

// heldSlots are the releases of slots by the place of the slot, in the order of their keys.
type heldSlots [slotPlaces][]store.Refund

const (
	slotEnforced = iota
	slotShadow   // of a rule in shadow
	slotLocal    // in the local store, during an outage
	slotUnsure   // the store may have it: its answer was lost
	slotPlaces
)

func (h *heldSlots) isEmpty() bool {
	for _, slots := range h {
		if len(slots) > 0 {
			return false
		}
	}
	return true
}

// hold adds the slot of a claim.
func (s *Slots) hold(place int, c *claim) {
	if s.held.isEmpty() {
		s.held[place] = s.first[:]
	} else {
		s.held[place] = append(s.held[place], store.Refund{})
	}
	charge := &s.held[place][len(s.held[place])-1].Charge
	c.write(charge)
	charge.Slot, charge.Cost = s.id, bucket.Token
}

// ID returns the ID for [Limiter.RenewSlots] and [Limiter.ReleaseSlots] in any process, or zero without slots. It is secret: a
// program that knows it can release the slots.
func (s *Slots) ID() bucket.SlotID {
	if s == nil {
		return bucket.SlotID{}
	}
	return s.id
}

// Lease returns the shortest lease of the slots, or 0 without slots.
func (s *Slots) Lease() time.Duration {
	if s == nil {
		return 0
	}
	return s.lease
}

// Renew starts the leases of the slots again. The error is [ErrSlotEnded] if a slot has ended. After any other error, the
// slots may have been renewed, and Renew can be called again.
func (s *Slots) Renew(ctx context.Context) error {
	if s == nil {
		return nil
	}
	allowed, err := s.takeEach(ctx, Mode{Renew: true, Within: s.within})
	if err == nil && !allowed {
		err = ErrSlotEnded
	}
	return err
}

// takeEach takes or renews the slots in each place. A rule in shadow does not affect the result.
func (s *Slots) takeEach(ctx context.Context, mode Mode) (allowed bool, err error) {
	s.mu.Lock()
	held := s.held
	s.mu.Unlock()
	if allowed = !held.isEmpty(); !allowed {
		return false, nil
	}
	for place, slots := range held {
		if len(slots) == 0 || place == slotUnsure {
			continue
		}
		charges := make([]store.Charge, len(slots))
		for i := range slots {
			charges[i] = slots[i].Charge
		}
		var fits bool
		switch place {
		case slotLocal:
			fits, err = s.limiter.outage.TakeSlots(ctx, charges, mode)
		case slotShadow:
			for i := range charges { // each for itself, because one may have ended
				_, _, _ = s.limiter.store.Take(ctx, nil, charges[i:i+1], mode)
			}
			continue
		default:
			_, fits, err = s.limiter.store.Take(ctx, nil, charges, mode)
		}
		if err != nil {
			return false, err
		}
		allowed = allowed && fits
	}
	return allowed, nil
}

// KeepAlive renews the slots three times per lease until the release, for requests that may run longer than a lease. It
// starts a timer, and no goroutine. If a slot has ended because the store lost it or did not answer for too long, KeepAlive
// takes it again if one is free. The program must call Release, even if the request fails: otherwise the slots never end.
func (s *Slots) KeepAlive() {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.held.isEmpty() && s.timer == nil {
		s.timer = time.AfterFunc(s.renewAfter(), s.keepAlive)
	}
}

const renewalsPerLease = 3

func (s *Slots) renewAfter() time.Duration { return s.lease / renewalsPerLease }

func (s *Slots) keepAlive() {
	ctx, cancel := context.WithTimeout(context.Background(), s.renewAfter())
	defer cancel()
	if err := s.Renew(ctx); errors.Is(err, ErrSlotEnded) {
		s.takeAgain(ctx)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.held.isEmpty() {
		s.timer.Reset(s.renewAfter())
	}
}

// takeAgain takes ended slots. It releases them if the request ended at the same time.
func (s *Slots) takeAgain(ctx context.Context) {
	s.mu.Lock()
	held := s.held
	s.mu.Unlock()
	_, _ = s.takeEach(ctx, Mode{Within: s.within})
	s.mu.Lock()
	released := s.held.isEmpty()
	s.mu.Unlock()
	if released {
		_ = s.refund(ctx, &held)
	}
}

// Release frees the slots and ends KeepAlive. It does nothing if they are free already. A slot is released at most once, so
// Release can be called again after any error. If no call succeeds, the slots end with their lease.
//
// The request's context has often ended before Release is called: pass context.WithoutCancel(ctx).
func (s *Slots) Release(ctx context.Context) error {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.timer != nil {
		s.timer.Stop()
	}
	if s.held.isEmpty() {
		return nil
	}
	if err := s.refund(ctx, &s.held); err != nil {
		return err
	}
	s.held = heldSlots{}
	return nil
}

// refund releases slots in their stores. Errors of rules in shadow are not the caller's.
func (s *Slots) refund(ctx context.Context, held *heldSlots) error {
	var failed error
	for place, slots := range held {
		var err error
		switch {
		case len(slots) == 0:
		case place == slotLocal:
			err = s.limiter.outage.ReleaseSlots(ctx, slots)
		case place == slotShadow:
			for i := range slots {
				_ = s.limiter.store.Refund(ctx, slots[i:i+1], "")
			}
		default:
			err = s.limiter.store.Refund(ctx, slots, "")
		}
		if err != nil {
			failed = errors.Join(failed, err)
		}
	}
	return failed
}

// ReleaseSoon is [Slots.Release] for adapters, at the end of a response. It waits for the store no longer than a take may, and
// tries again in the background, for half a minute: see [Reservation.FinishSoon].
func (s *Slots) ReleaseSoon(ctx context.Context) {
	if s == nil {
		return
	}
	s.mu.Lock()
	none := s.held.isEmpty()
	s.mu.Unlock()
	if !none {
		s.limiter.finishSoon(ctx, s.within, s.tryRelease, nil)
	}
}

func (s *Slots) tryRelease(ctx context.Context, _ bool) (again bool, err error) {
	err = s.Release(ctx)
	return err != nil, err
}

// keepSlots adds the slots of an allowed take to d. lost reports that the store may have taken them without an answer.
func (l *Limiter) keepSlots(d *Decision, e *evaluation, mode Mode, shadow, lost bool) {
	if mode.DryRun || mode.MaxWait == bucket.Forced {
		return
	}
	s := d.Slots
	for _, c := range e.order {
		if !holdsSlot(c.limit) || c.asked == 0 || d.Degraded && !c.local && !lost {
			continue
		}
		if s == nil {
			s = &Slots{limiter: l, id: e.slot, within: e.within}
		}
		_, micros := c.limit.Refill()
		if lease := time.Duration(micros) * time.Microsecond; s.lease == 0 || lease < s.lease {
			s.lease = lease
		}
		switch {
		case shadow:
			s.hold(slotShadow, c)
		case !d.Degraded:
			s.hold(slotEnforced, c)
		}
		if c.local {
			s.hold(slotLocal, c)
		}
		if lost {
			s.hold(slotUnsure, c)
		}
	}
	d.Slots = s
}

// dropSlots releases the slots of a take that its caller abandoned, in the background: the store may have them.
func (l *Limiter) dropSlots(ctx context.Context, e *evaluation, mode Mode, err error) {
	if Spent(err) == NotSpent {
		return
	}
	lost := Decision{Degraded: true}
	if l.keepSlots(&lost, e, mode, false, true); lost.Slots != nil {
		l.finishLater(context.WithoutCancel(ctx), lost.Slots.tryRelease, nil)
	}
}

// RenewSlots starts the leases of the slots of a request again, like [Slots.Renew] in another process. req is the request that
// took them, with its [Request.Slot] set. It returns their shortest lease. The error is [ErrSlotEnded] if a slot has
// ended, or if other limits apply to req now.
func (l *Limiter) RenewSlots(ctx context.Context, req Request) (lease time.Duration, err error) {
	s, err := l.slotsOf(&req)
	if err != nil {
		return 0, err
	}
	return s.lease, s.Renew(ctx)
}

// ReleaseSlots frees the slots of a request, like [Slots.Release] in another process. req is the request that took them, with
// its [Request.Slot] set.
func (l *Limiter) ReleaseSlots(ctx context.Context, req Request) error {
	s, err := l.slotsOf(&req)
	if err != nil {
		return err
	}
	return s.Release(ctx)
}

// slotsOf returns the slots of a request.
func (l *Limiter) slotsOf(req *Request) (*Slots, error) {
	if req.Slot == (bucket.SlotID{}) {
		return nil, fmt.Errorf("%w: no slot: set Slot to the ID of the slots", ErrRequest)
	}
	e, err := l.evaluate(req)
	if err != nil {
		return nil, err
	}
	defer e.release()
	e.slot = req.Slot
	var d Decision
	for i, claims := range [...][]claim{e.claims, e.shadow} {
		e.charge(claims, nil)
		l.keepSlots(&d, e, Mode{}, i == 1, false)
	}
	if d.Slots == nil {
		return nil, fmt.Errorf("%w: no concurrency limit applies to it: send the request that took the slots", ErrRequest)
	}
	d.Slots.within = l.config.Deadline
	return d.Slots, nil
}
