// SPDX-License-Identifier: Apache-2.0

package pgstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/metehq/mete/store"
)

// submit submits a. While its buckets are locked, it retries on the held lane until the deadline.
func (s *Store) submit(ctx context.Context, a *ask) (free bool, err error) {
	a.onHeldLane = s.held.holdsAny(a.charges)
	began, within := time.Now(), a.mode.Within
	for {
		laneNumber := commonLane
		if a.onHeldLane {
			laneNumber = heldLane
		}
		free, err = s.lanes.At(laneNumber).Do(ctx, a, within)
		if err == nil || !free || !errors.Is(err, errHeld) {
			return free, err
		}
		left := cmp.Or(a.mode.Within, s.config.Timeout) - time.Since(began) - heldPoll
		if left <= 0 {
			return true, err
		}
		if within > 0 {
			within = left
		}
		a.onHeldLane = true
		if pause(ctx, heldPoll) != nil {
			return true, err
		}
	}
}

// pause waits for d, or returns the error of ctx if ctx ends first.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// setLockTimeout sets how long a call with this timeout waits for a lock, in PostgreSQL's notation.
func (b *batch) setLockTimeout(timeout time.Duration) {
	b.lockTimeout = strconv.FormatInt(max(min(lockWait, timeout/4).Milliseconds(), 1), 10)
}

// addLockTimeout adds the lock timeout to the parameters, except in a caller's transaction.
func (b *batch) addLockTimeout() {
	if !b.store.joined {
		b.packet.beginParam()
		b.packet.bytes = append(b.packet.bytes, b.lockTimeout...)
	}
}

// isHeldLane reports whether the call belongs to the held lane.
func (b *batch) isHeldLane() bool { return len(b.asks) > 0 && b.asks[0].onHeldLane }

// runAvoidingLocks is runOn, except that asks with locked buckets do not delay the others.
func (b *batch) runAvoidingLocks(ctx context.Context, conn *pgx.Conn) error {
	if b.isHeldLane() {
		return b.runHeld(ctx, conn)
	}
	if known := b.store.held.holders(b.asks); len(known) > 0 { // an ask may have been queued before its bucket was known as held
		return b.retryExcept(ctx, conn, b.asks, known)
	}
	err := b.runOn(ctx, conn)
	if len(b.asks) == 1 && pgconn.Timeout(err) { // it may have waited for a lock
		b.store.held.add(withHolders(b.asks[0].keys(), nil))
		return err
	}
	stuck := slices.DeleteFunc(slices.Clone(b.asks), func(a *ask) bool { return !isLocked(a.Err) })
	if len(stuck) == 0 || conn.IsClosed() {
		return err
	}
	locked, failed := b.store.findHeld(ctx, conn, keysOf(stuck))
	if failed != nil {
		return err
	}
	b.store.held.add(locked)
	return b.retryExcept(ctx, conn, stuck, locked)
}

// retryExcept runs the asks that use no locked bucket. An ask that meets another lock is retried later, because
// on a slow server a busy bucket can look like a locked one.
func (b *batch) retryExcept(ctx context.Context, conn *pgx.Conn, asks []*ask, locked map[string]holder) error {
	ran, err := b.runExcept(ctx, conn, asks, locked)
	for _, a := range ran {
		if isLocked(a.Err) {
			a.Err = newHeldError(a.Err)
		}
	}
	return err
}

// runHeld runs the asks of the held lane with unlocked buckets. It does not wait for the others, because it would
// hold its own locks for longer.
func (b *batch) runHeld(ctx context.Context, conn *pgx.Conn) error {
	known := b.store.held.holders(b.asks)
	seen, err := b.store.findLocked(ctx, conn, slices.Collect(maps.Keys(known)))
	if err != nil {
		err = newNotSpent(newStoreError(err).Err)
		for _, a := range b.asks {
			a.Err = err
		}
		return err
	}
	still := maps.Clone(seen)
	maps.DeleteFunc(still, func(k string, by holder) bool { return by != known[k] })
	b.store.held.add(still)
	err = b.runHeldExcept(ctx, conn, b.asks, still, seen)

	// Only a wait shows whether a bucket without a row is locked. Each such bucket gets a short wait in a call of its
	// own, so that it delays no other bucket.
	b.setLockTimeout(heldPoll * 2)
	for began, keys := time.Now(), slices.Collect(maps.Keys(still)); len(keys) > 0 && time.Since(began) < heldRound; keys = keys[1:] {
		k := keys[0]
		if still[k] != noRow {
			continue
		}
		delete(still, k)
		its := slices.DeleteFunc(slices.Clone(b.asks), func(a *ask) bool { return !a.usesKey(k) })
		if failed := b.runHeldExcept(ctx, conn, its, still, seen); failed != nil {
			still[k], err = noRow, failed
		}
	}
	return err
}

// runHeldExcept runs the asks that use no locked bucket. Asks that meet a lock are retried later.
func (b *batch) runHeldExcept(ctx context.Context, conn *pgx.Conn, asks []*ask, still, seen map[string]holder) error {
	ran, err := b.runExcept(ctx, conn, asks, still)
	for _, a := range ran {
		switch {
		case isLocked(a.Err):
			b.store.held.add(withHolders(a.keys(), seen))
			a.Err = newHeldError(a.Err)
		case a.Err == nil:
			b.store.held.remove(a.keys())
		}
	}
	return err
}

// withHolders maps keys to the holders that were seen, if any.
func withHolders(keys []string, seen map[string]holder) map[string]holder {
	all := make(map[string]holder, len(keys))
	for _, k := range keys {
		all[k] = seen[k]
	}
	return all
}

// runExcept runs the asks that use none of the locked keys. The others fail with errHeld.
func (b *batch) runExcept(ctx context.Context, conn *pgx.Conn, asks []*ask, locked map[string]holder) (ran []*ask, err error) {
	rest := newBatch(b.store)
	rest.Reset()
	rest.lockTimeout = b.lockTimeout
	for _, a := range asks {
		if slices.ContainsFunc(a.charges, func(c store.Charge) bool { _, is := locked[c.Key]; return is }) {
			a.Err = newHeldError(a.Err)
			continue
		}
		a.Err, a.retryMixed = nil, false
		rest.Add(a)
	}
	if len(rest.asks) > 0 {
		err = rest.runOn(ctx, conn)
	}
	return rest.asks, err
}

func newHeldError(err error) error {
	if err == nil {
		return newNotSpent(errHeld)
	}
	return newNotSpent(fmt.Errorf("%w: %w", errHeld, newStoreError(err).Err))
}

func (a *ask) keys() []string {
	keys := make([]string, len(a.charges))
	for i := range keys {
		keys[i] = a.charges[i].Key
	}
	return keys
}

func (a *ask) usesKey(key string) bool {
	return slices.ContainsFunc(a.charges, func(c store.Charge) bool { return c.Key == key })
}

func keysOf(asks []*ask) (keys []string) {
	for _, a := range asks {
		keys = append(keys, a.keys()...)
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

// findHeld returns the keys with buckets that the same transaction keeps locked for a while; other buckets are
// just busy. If all locked buckets have no row, it returns these: another transaction is about to insert them.
func (s *Store) findHeld(ctx context.Context, conn *pgx.Conn, keys []string) (map[string]holder, error) {
	locked, err := s.findLocked(ctx, conn, keys)
	rows := maps.Clone(locked)
	maps.DeleteFunc(rows, func(_ string, by holder) bool { return by == noRow })
	if err != nil || len(rows) == 0 {
		return locked, err
	}
	for range heldLooks {
		if err := pause(ctx, heldPoll/heldLooks); err != nil {
			return nil, err
		}
		now, err := s.findLocked(ctx, conn, slices.Collect(maps.Keys(rows)))
		if err != nil {
			return nil, err
		}
		maps.DeleteFunc(rows, func(k string, by holder) bool { return now[k] != by })
		if len(rows) == 0 {
			break
		}
	}
	return rows, nil
}

// findLocked returns the keys with buckets that are locked, or that have no row, because another transaction may
// be inserting it.
func (s *Store) findLocked(ctx context.Context, conn *pgx.Conn, keys []string) (map[string]holder, error) {
	locked := map[string]holder{}
	if len(keys) == 0 {
		return locked, nil
	}
	var p packet
	p.beginArray(pgtype.ByteaOID, len(keys))
	for _, k := range keys {
		p.appendText(s.config.Prefix, k)
	}
	params := p.end()
	err := s.retry(ctx, conn, func(ctx context.Context, conn *pgx.Conn) error { // at a higher isolation level, a changed row is an error
		clear(locked)
		return s.query(ctx, conn, &s.statements.locked, params, func(row [][]byte) {
			if len(row) != 2 || len(row[0]) < len(s.config.Prefix) {
				return
			}
			by, _ := readInt(row[1])
			locked[string(row[0][len(s.config.Prefix):])] = holder(by)
		})
	})
	return locked, err
}

func isLocked(err error) bool {
	const notAvailable = "55P03"
	pgErr, ok := errors.AsType[*pgconn.PgError](err)
	return ok && pgErr.Code == notAvailable
}
