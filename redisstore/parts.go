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

// takeInParts takes charges that no one script can: one part after another, in
// the order of their slots. Where one is denied or fails, those before it are
// given back. Until then others see them as spent, so that a take at the same
// time may be denied early, and none is admitted wrongly.
func (s *Store) takeInParts(ctx context.Context, dst []bucket.Snapshot, charges []store.Charge, mode mete.Mode, by division) ([]bucket.Snapshot, bool, error) {
	t := partsTake{store: s, charges: charges, mode: mode, parts: s.parts(charges, by), attempt: rand.Text()}
	if mode.Within > 0 {
		t.until = time.Now().Add(mode.Within)
	}
	t.snaps = make([]bucket.Snapshot, len(charges))
	if mode.UpTo {
		if err := t.cut(ctx); err != nil {
			return dst, false, err
		}
	}
	if mode.DryRun {
		allowed, err := t.look(ctx, -1)
		return append(dst, t.snaps...), allowed, err
	}
	for i := range t.parts {
		allowed, err := t.take(ctx, i)
		if err != nil {
			if mode.ID != "" && mete.Spent(err) == mete.MaybeSpent {
				i++ // it is remembered if it was taken
			}
			t.undo(i)
			return dst, false, err
		}
		if !allowed {
			t.undo(i)
			_, err := t.look(ctx, i)
			return append(dst, t.snaps...), false, err
		}
	}
	return append(dst, t.snaps...), true, nil
}

// A partsTake is a take in parts on its way.
type partsTake struct {
	store   *Store
	charges []store.Charge
	mode    mete.Mode
	parts   []part
	snaps   []bucket.Snapshot
	attempt string
	until   time.Time // zero: however long it takes
}

// ask has an ask for part i answered, as often as the part is on its way between
// two nodes.
func (t *partsTake) ask(ctx context.Context, i int, mode mete.Mode) (bool, error) {
	p, until := &t.parts[i], t.until
	for backoff := time.Millisecond; ; backoff = min(2*backoff, 50*time.Millisecond) {
		a := newAsk(opTake, p.charges, mode)
		if mode.ID != "" && !mode.DryRun {
			a.memory, a.attempt = t.memory(i), t.attempt
		}
		t.store.addLeases(a)
		within := time.Duration(0)
		if !until.IsZero() {
			within = max(time.Until(until), time.Nanosecond)
		}
		err := a.do(ctx, t.store.laneOf(p.charges), within)
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
			return false, named(err, "take")
		}
	}
}

// pause waits a little, and reports false where there is no time for it.
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
	mode.UpTo = false // that is done
	return t.ask(ctx, i, mode)
}

// memory is the key that part i is remembered under: by the ID and the keys of
// all of the take.
func (t *partsTake) memory(i int) string {
	return t.store.memoryKey(t.mode.ID, t.charges, t.parts[i].charges[0].Key)
}

// look asks all parts but one what they would answer, at the same time.
func (t *partsTake) look(ctx context.Context, but int) (bool, error) {
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
			allowed, err := t.ask(ctx, i, mode)
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

// cut lowers the costs to what the emptiest of all buckets holds. It may have
// less when it is asked: then the take is denied.
func (t *partsTake) cut(ctx context.Context) error {
	if _, err := t.look(ctx, -1); err != nil {
		return err
	}
	there := bucket.MaxTokens
	for i := range t.snaps {
		there = min(there, t.snaps[i].Remaining())
	}
	for i := range t.parts {
		for j := range t.parts[i].charges {
			c := &t.parts[i].charges[j]
			c.Cost = bucket.UpTo(c.Cost, there)
		}
	}
	return nil
}

// undo cancels the first n parts, and does not come back before that has been tried
// once, or the caller waits no longer. Whatever fails is tried again in the
// background. A part that failed, and may have been taken all the same, can be
// undone where it has an ID: Redis remembers whose take it was. Without one it stays
// taken, as giving it back could overtake the take, and the error says so.
func (t *partsTake) undo(n int) {
	within := t.store.config.Timeout
	if !t.until.IsZero() {
		within = min(within, max(time.Until(t.until), time.Nanosecond))
	}
	var tried sync.WaitGroup
	for i := range t.parts[:n] {
		p, u := &t.parts[i], undoing{}
		if t.mode.ID != "" {
			u.memory, u.attempt = t.memory(i), t.attempt
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
