// SPDX-License-Identifier: Apache-2.0

package pgstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/metehq/mete"
)

// answered has a answered, on the way that its buckets go: again and again where they
// are held, until it is too late.
func (s *Store) answered(ctx context.Context, a *ask) (free bool, err error) {
	a.waits = s.held.any(a.charges)
	began, within := time.Now(), a.mode.Within
	for {
		way := commonWay
		if a.waits {
			way = heldWay
		}
		free, err = s.lanes.At(way).Do(ctx, a, within)
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
		a.waits = true
		select {
		case <-ctx.Done():
			return true, err
		case <-time.After(heldPoll):
		}
	}
}

// setPatience says how long a call that has so much time waits for a lock, as a
// setting of PostgreSQL.
func (b *batch) setPatience(timeout time.Duration) {
	b.patience = strconv.FormatInt(max(min(lockWait, timeout/4).Milliseconds(), 1), 10)
}

// addPatience adds it to the parameters, but in a transaction of a caller's.
func (b *batch) addPatience() {
	if !b.store.joined {
		b.packet.begin()
		b.packet.bytes = append(b.packet.bytes, b.patience...)
	}
}

// waits reports whether the call is one of those on the way of what is held.
func (b *batch) waits() bool { return len(b.asks) > 0 && b.asks[0].waits }

// runApart is runOn, without those whose buckets are held where others are with them.
func (b *batch) runApart(ctx context.Context, conn *pgx.Conn) error {
	if b.waits() {
		return b.runHeld(ctx, conn)
	}
	if b.store.held.some.Load() { // they may have come before that was known
		if locked := b.store.held.of(b.asks); len(locked) > 0 {
			_, err := b.without(ctx, conn, b.asks, locked)
			return err
		}
	}
	err := b.runOn(ctx, conn)
	if err != nil && len(b.asks) == 1 && conn.IsClosed() { // it may have waited for a lock
		b.store.held.add(b.asks[0].keys()...)
		return err
	}
	stuck := slices.DeleteFunc(slices.Clone(b.asks), func(a *ask) bool { return !isLocked(a.Err) })
	if len(stuck) == 0 || conn.IsClosed() {
		return err
	}
	locked, failed := b.store.lockedForLong(ctx, conn, keysOf(stuck))
	if failed != nil {
		return err
	}
	b.store.held.add(locked...)
	_, err = b.without(ctx, conn, stuck, locked)
	return err
}

// runHeld is runOn for buckets that were held, as far as they are not any more. It
// does not wait for the others: it would keep what it has locked before.
func (b *batch) runHeld(ctx context.Context, conn *pgx.Conn) error {
	locked, missing, err := b.store.locked(ctx, conn, b.store.held.of(b.asks))
	if err != nil {
		err = notSpent(storeError(err).Err)
		for _, a := range b.asks {
			a.Err = err
		}
		return err
	}
	b.store.held.add(locked...)
	if len(missing) > 0 { // somebody may be about to make one
		b.setPatience(heldPoll * 2)
	}
	ran, err := b.without(ctx, conn, b.asks, locked)
	for _, a := range ran {
		switch {
		case isLocked(a.Err): // since then, or it is one that is being made
			b.store.held.add(slices.DeleteFunc(a.keys(), func(k string) bool { return !slices.Contains(missing, k) })...)
			a.Err = heldError(a.Err)
		case a.Err == nil:
			b.store.held.remove(a.keys()...)
		}
	}
	return err
}

// without runs those of the asks that need none of the keys. The others are held.
func (b *batch) without(ctx context.Context, conn *pgx.Conn, asks []*ask, keys []string) (ran []*ask, err error) {
	rest := newBatch(b.store)
	rest.Reset()
	rest.patience = b.patience
	for _, a := range asks {
		if slices.ContainsFunc(a.charges, func(c mete.Charge) bool { return slices.Contains(keys, c.Key) }) {
			a.Err = heldError(a.Err)
			continue
		}
		a.Err, a.again = nil, false
		rest.Add(a)
	}
	if len(rest.asks) > 0 {
		err = rest.runOn(ctx, conn)
	}
	return rest.asks, err
}

func heldError(err error) error {
	if err == nil {
		return notSpent(errHeld)
	}
	return notSpent(fmt.Errorf("%w: %w", errHeld, storeError(err).Err))
}

func (a *ask) keys() []string {
	keys := make([]string, len(a.charges))
	for i := range keys {
		keys[i] = a.charges[i].Key
	}
	return keys
}

func keysOf(asks []*ask) (keys []string) {
	for _, a := range asks {
		keys = append(keys, a.keys()...)
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

// lockedForLong returns those of the keys whose buckets are not only busy. Where none
// is locked, it is one that has no row yet, and that another is about to make.
func (s *Store) lockedForLong(ctx context.Context, conn *pgx.Conn, keys []string) ([]string, error) {
	locked, missing, err := s.locked(ctx, conn, keys)
	if len(locked) == 0 {
		return missing, err
	}
	for range heldLooks {
		<-time.After(heldPoll / heldLooks)
		if locked, _, err = s.locked(ctx, conn, locked); len(locked) == 0 {
			break
		}
	}
	return locked, err
}

// locked returns those of the keys whose buckets are locked, and those that have no
// row, which another may be about to make.
func (s *Store) locked(ctx context.Context, conn *pgx.Conn, keys []string) (locked, missing []string, err error) {
	var p packet
	p.array(pgtype.ByteaOID, len(keys))
	for _, k := range keys {
		p.text(s.config.Prefix, k)
	}
	err = s.query(ctx, conn, &s.statements.locked, p.end(), func(row [][]byte) {
		if len(row) != 2 || len(row[0]) < len(s.config.Prefix) || len(row[1]) != 1 {
			return
		}
		key := string(row[0][len(s.config.Prefix):])
		if row[1][0] != 0 {
			locked = append(locked, key)
		} else {
			missing = append(missing, key)
		}
	})
	return locked, missing, err
}

// isLocked says whether an error is that of a lock that was not waited for longer.
func isLocked(err error) bool {
	const notAvailable = "55P03"
	said, ok := errors.AsType[*pgconn.PgError](err)
	return ok && said.Code == notAvailable
}
