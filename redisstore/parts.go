// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"context"
	"crypto/rand"
	"sync"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/store"
)

// takeInParts charges one part after another, in the order of their slots. If a part is denied or fails, the
// earlier parts are refunded. Other takes see the earlier parts as spent until then: they may be denied too
// early, but are never admitted wrongly.
func (s *Store) takeInParts(ctx context.Context, dst []bucket.Snapshot, charges []store.Charge, mode mete.Mode, by division) ([]bucket.Snapshot, bool, error) {
	t := partsTake{store: s, charges: charges, mode: mode, parts: s.splitCharges(charges, by), attempt: rand.Text()}
	if mode.Within > 0 {
		t.until = time.Now().Add(mode.Within)
	}
	t.snaps, t.denied = make([]bucket.Snapshot, len(charges)), len(t.parts)
	if mode.UpTo {
		if err := t.capCosts(ctx); err != nil {
			return dst, false, err
		}
	}
	if mode.DryRun {
		allowed, err := t.peek(ctx, -1)
		return append(dst, t.snaps...), allowed, err
	}
	for i := range t.parts {
		allowed, err := t.take(ctx, i)
		if err != nil {
			if mode.ID != "" && mete.Spent(err) == mete.MaybeSpent {
				i++ // a remembered part can be undone
			}
			if !mode.Renew { // it has taken nothing
				t.undo(i)
			}
			return dst, false, err
		}
		if !allowed {
			if !mode.Renew {
				t.undo(i)
			}
			if mode.MaxWait == 0 {
				t.denied = i // the later parts start penalties, as in one step
			}
			_, err := t.peek(ctx, i)
			return append(dst, t.snaps...), false, err
		}
	}
	return append(dst, t.snaps...), true, nil
}

type partsTake struct {
	store   *Store
	charges []store.Charge
	mode    mete.Mode
	parts   []part
	snaps   []bucket.Snapshot
	attempt string
	until   time.Time // zero is no deadline
	denied  int       // the part that denied the take; the number of parts until then
}

// submit sends part i, and retries while the slot of the part moves between two nodes.
func (t *partsTake) submit(ctx context.Context, i int, mode mete.Mode) (bool, error) {
	p, until := &t.parts[i], t.until
	for backoff := time.Millisecond; ; backoff = min(2*backoff, 50*time.Millisecond) {
		a := newAsk(opTake, p.charges, mode)
		if mode.ID != "" && !mode.DryRun {
			a.memory, a.attempt = t.memoryKey(i), t.attempt
		}
		t.store.addLeases(a)
		t.store.addPenalties(a)
		a.starts = i > t.denied
		within := time.Duration(0)
		if !until.IsZero() {
			within = max(time.Until(until), time.Nanosecond)
		}
		err := a.submit(ctx, t.store.laneFor(p.charges), within)
		if err == nil {
			for j, at := range p.order {
				t.snaps[at] = a.snaps[j]
			}
			allowed := a.allowed
			a.release()
			return allowed, nil
		}
		if until.IsZero() {
			until = time.Now().Add(t.store.config.Timeout)
		}
		if !isTryAgain(err) || !pause(ctx, backoff, until) {
			return false, withOp(err, "take")
		}
	}
}

// pause waits for d, and reports false if the deadline or ctx comes first.
func pause(ctx context.Context, d time.Duration, until time.Time) bool {
	if time.Until(until) < d {
		return false
	}
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

func (t *partsTake) take(ctx context.Context, i int) (bool, error) {
	mode := t.mode
	mode.UpTo = false // capCosts has set the costs
	return t.submit(ctx, i, mode)
}

// memoryKey returns the key that remembers part i, by the ID and all keys of the take.
func (t *partsTake) memoryKey(i int) string {
	return t.store.memoryKey(t.mode.ID, t.charges, t.parts[i].charges[0].Key)
}

// peek asks all parts except one for their answers, concurrently.
func (t *partsTake) peek(ctx context.Context, but int) (bool, error) {
	mode := t.mode
	mode.DryRun, mode.UpTo, mode.ID = true, false, ""
	type answer struct {
		allowed bool
		err     error
	}
	answers := make(chan answer, len(t.parts))
	for i := range t.parts {
		if i == but {
			answers <- answer{allowed: true}
			continue
		}
		go func() {
			allowed, err := t.submit(ctx, i, mode)
			answers <- answer{allowed, err}
		}()
	}
	all := answer{allowed: true}
	for range t.parts {
		a := <-answers
		all.allowed = all.allowed && a.allowed
		if a.err != nil {
			all.err = a.err
		}
	}
	return all.allowed, all.err
}

// capCosts lowers the costs to the remaining tokens of the emptiest bucket. If the bucket has fewer tokens by the
// time of the take, the take is denied.
func (t *partsTake) capCosts(ctx context.Context) error {
	if _, err := t.peek(ctx, -1); err != nil {
		return err
	}
	there := bucket.MaxTokens
	for i := range t.snaps {
		if kindOf(&t.charges[i].Limit) != held {
			there = min(there, max(t.snaps[i].Limit.Capacity()-t.snaps[i].Missing(), 0)) // also during a penalty
		}
	}
	for i := range t.parts {
		for j := range t.parts[i].charges {
			if c := &t.parts[i].charges[j]; kindOf(&c.Limit) != held {
				c.Cost = bucket.UpTo(c.Cost, there)
			}
		}
	}
	return nil
}

// undo cancels the first n parts. It returns after each part was tried once, or when the caller's deadline ends;
// failed cancellations are retried in the background. A failed part may have been charged. With an ID it can be
// undone, because Redis remembers which attempt made the take. Without an ID it stays charged, as the refund
// could overtake the take, and the error reports that.
func (t *partsTake) undo(n int) {
	within := t.store.config.Timeout
	if !t.until.IsZero() {
		within = min(within, max(time.Until(t.until), time.Nanosecond))
	}
	var tried sync.WaitGroup
	for i := range t.parts[:n] {
		p, u := &t.parts[i], undoing{}
		if t.mode.ID != "" {
			u.memory, u.attempt = t.memoryKey(i), t.attempt
		} else {
			u.memory = t.store.undoneKey(p.charges[0].Key, t.attempt, i)
		}
		for j, at := range p.order {
			u.refunds = append(u.refunds, mete.Refund{Charge: p.charges[j], Taken: t.snaps[at].Taken()})
			u.full = max(u.full, t.snaps[at].FullAfter(), p.charges[j].Limit.TimeFor(p.charges[j].Cost))
		}
		tried.Go(func() { t.store.undo.begin(u, within) })
	}
	tried.Wait()
}
