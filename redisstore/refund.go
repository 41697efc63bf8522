// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/store"
)

var errRefundPending = errors.New("some buckets are unreachable: they are refunded once, as soon as they are reachable")

// Refund implements [mete.Store]. If the buckets are in several slots of a cluster, the first slot decides: if it
// certainly refunded nothing, the error is [mete.NotSpent]. Otherwise the store refunds every slot, and retries
// failed slots in the background until each has refunded once. The error is [mete.MaybeSpent] while a slot has
// not answered.
func (s *Store) Refund(ctx context.Context, refunds []mete.Refund, id string) error {
	if len(refunds) == 0 {
		return nil
	}
	charges := make([]store.Charge, len(refunds))
	for i := range refunds {
		charges[i] = refunds[i].Charge
	}
	by := bySlot
	if s.laneFor(charges) != nil {
		todo := undoing{refunds: refunds}
		if id != "" {
			todo.memory = s.refundKey(id, charges, charges[0].Key)
		}
		err := s.undo.submit(ctx, &todo, 0)
		if err == nil {
			return nil
		}
		if !isTryAgain(err) || id != "" {
			return withOp(err, "refund")
		}
		by = byKey // the slot is moving to another node
	}
	within := s.config.Timeout
	if end, ok := ctx.Deadline(); ok {
		within = min(within, max(time.Until(end), time.Nanosecond))
	}
	parts := s.refundParts(refunds, s.splitCharges(charges, by), id, charges)
	err := s.undo.submitOnce(ctx, &parts[0], within)
	switch {
	case err == nil:
		parts = parts[1:]
	case mete.Spent(err) == mete.NotSpent:
		return withOp(err, "refund")
	}
	var tried sync.WaitGroup
	var later atomic.Int64
	for _, part := range parts {
		tried.Go(func() {
			if !s.undo.begin(part, within) {
				later.Add(1)
			}
		})
	}
	if tried.Wait(); later.Load() > 0 {
		return &mete.StoreError{Op: "refund", Store: "redisstore", Spent: mete.MaybeSpent, Err: fmt.Errorf("%d slots: %w", later.Load(), errRefundPending)}
	}
	return nil
}

// refundParts returns the refund of each part. Each part remembers that it is done: under the refund's ID, or
// until the refund can no longer be repeated.
func (s *Store) refundParts(refunds []mete.Refund, parts []part, id string, charges []store.Charge) []undoing {
	all, attempt := make([]undoing, len(parts)), rand.Text()
	for i, p := range parts {
		u := &all[i]
		for _, at := range p.order {
			r := refunds[at]
			u.refunds = append(u.refunds, r)
			u.full = max(u.full, r.Limit.TimeFor(r.Limit.Capacity()+r.Cost))
		}
		if u.memory = s.undoneKey(p.charges[0].Key, attempt, i); id != "" {
			u.memory, u.permanent = s.refundKey(id, charges, p.charges[0].Key), true
		}
	}
	return all
}

func (s *Store) undoneKey(key, attempt string, part int) string {
	return s.companionKey("id:", key, "undo-"+attempt+"-"+strconv.Itoa(part))
}

// refundKey returns the key that remembers a refund by ID, in the slot of key.
func (s *Store) refundKey(id string, charges []store.Charge, key string) string {
	return s.companionKey("id:", key, "refund-"+hashID(id, charges))
}

// submit refunds todo. Without a memory key, each call refunds again.
func (u *undoer) submit(ctx context.Context, todo *undoing, within time.Duration) error {
	a := newRefund(todo.refunds)
	a.memory, a.attempt = todo.memory, todo.attempt
	u.store.addLeases(a)
	err := a.submit(ctx, u.store.laneFor(a.charges), cmp.Or(within, u.store.config.Timeout))
	if err == nil {
		a.release()
	}
	return err
}
