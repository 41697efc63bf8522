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
		if pause(ctx, heldPoll) != nil {
			return true, err
		}
	}
}

// pause waits for d. It returns the error of ctx if ctx ends first.
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
	if known := b.store.held.of(b.asks); len(known) > 0 { // they may have come before that was known
		return b.onceMore(ctx, conn, b.asks, known)
	}
	err := b.runOn(ctx, conn)
	if len(b.asks) == 1 && pgconn.Timeout(err) { // it may have waited for a lock
		b.store.held.add(unknown(b.asks[0].keys(), nil))
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
	b.store.held.add(locked)
	return b.onceMore(ctx, conn, stuck, locked)
}

// onceMore is without. Those who meet a lock again ask again: a bucket that no
// transaction holds can be as busy, where the server is slow.
func (b *batch) onceMore(ctx context.Context, conn *pgx.Conn, asks []*ask, locked map[string]holder) error {
	ran, err := b.without(ctx, conn, asks, locked)
	for _, a := range ran {
		if isLocked(a.Err) {
			a.Err = heldError(a.Err)
		}
	}
	return err
}

// runHeld is runOn for buckets that were held, as far as they are not any more. It
// does not wait for the others: it would keep what it has locked before.
func (b *batch) runHeld(ctx context.Context, conn *pgx.Conn) error {
	known := b.store.held.of(b.asks)
	seen, err := b.store.locked(ctx, conn, slices.Collect(maps.Keys(known)))
	if err != nil {
		err = notSpent(storeError(err).Err)
		for _, a := range b.asks {
			a.Err = err
		}
		return err
	}
	still := maps.Clone(seen)
	maps.DeleteFunc(still, func(k string, by holder) bool { return by != known[k] })
	b.store.held.add(still)
	err = b.heldRun(ctx, conn, b.asks, still, seen)

	// Whether a bucket that has no row is held shows only in a wait for it: a short
	// one, and each for itself, so that those that are not are not kept as well.
	b.setPatience(heldPoll * 2)
	for began, keys := time.Now(), slices.Collect(maps.Keys(still)); len(keys) > 0 && time.Since(began) < heldRound; keys = keys[1:] {
		k := keys[0]
		if still[k] != noRow {
			continue
		}
		delete(still, k)
		its := slices.DeleteFunc(slices.Clone(b.asks), func(a *ask) bool { return !a.needs(k) })
		if failed := b.heldRun(ctx, conn, its, still, seen); failed != nil {
			still[k], err = noRow, failed
		}
	}
	return err
}

// heldRun is without. Those who meet a lock, by one who was seen or somebody since,
// ask again.
func (b *batch) heldRun(ctx context.Context, conn *pgx.Conn, asks []*ask, still, seen map[string]holder) error {
	ran, err := b.without(ctx, conn, asks, still)
	for _, a := range ran {
		switch {
		case isLocked(a.Err):
			b.store.held.add(unknown(a.keys(), seen))
			a.Err = heldError(a.Err)
		case a.Err == nil:
			b.store.held.remove(a.keys())
		}
	}
	return err
}

// unknown are keys with who was seen to hold them, if anybody was.
func unknown(keys []string, seen map[string]holder) map[string]holder {
	all := make(map[string]holder, len(keys))
	for _, k := range keys {
		all[k] = seen[k]
	}
	return all
}

// without runs those of the asks that need none of the keys. The others are held.
func (b *batch) without(ctx context.Context, conn *pgx.Conn, asks []*ask, locked map[string]holder) (ran []*ask, err error) {
	rest := newBatch(b.store)
	rest.Reset()
	rest.patience = b.patience
	for _, a := range asks {
		if slices.ContainsFunc(a.charges, func(c store.Charge) bool { _, is := locked[c.Key]; return is }) {
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

func (a *ask) needs(key string) bool {
	return slices.ContainsFunc(a.charges, func(c store.Charge) bool { return c.Key == key })
}

func keysOf(asks []*ask) (keys []string) {
	for _, a := range asks {
		keys = append(keys, a.keys()...)
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

// lockedForLong returns those of the keys whose buckets are not only busy: they have
// the same holder for a while. Where none has one, it is a bucket that has no row yet,
// and that another is about to make.
func (s *Store) lockedForLong(ctx context.Context, conn *pgx.Conn, keys []string) (map[string]holder, error) {
	locked, err := s.locked(ctx, conn, keys)
	rows := maps.Clone(locked)
	maps.DeleteFunc(rows, func(_ string, by holder) bool { return by == noRow })
	if err != nil || len(rows) == 0 {
		return locked, err
	}
	for range heldLooks {
		if err := pause(ctx, heldPoll/heldLooks); err != nil {
			return nil, err
		}
		now, err := s.locked(ctx, conn, slices.Collect(maps.Keys(rows)))
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

// locked returns those of the keys whose buckets are locked, or have no row, which
// another may be about to make.
func (s *Store) locked(ctx context.Context, conn *pgx.Conn, keys []string) (map[string]holder, error) {
	locked := map[string]holder{}
	if len(keys) == 0 {
		return locked, nil
	}
	var p packet
	p.array(pgtype.ByteaOID, len(keys))
	for _, k := range keys {
		p.text(s.config.Prefix, k)
	}
	err := s.query(ctx, conn, &s.statements.locked, p.end(), func(row [][]byte) {
		if len(row) != 2 || len(row[0]) < len(s.config.Prefix) {
			return
		}
		by, _ := readInt(row[1])
		locked[string(row[0][len(s.config.Prefix):])] = holder(by)
	})
	return locked, err
}

// isLocked says whether an error is that of a lock that was not waited for longer.
func isLocked(err error) bool {
	const notAvailable = "55P03"
	said, ok := errors.AsType[*pgconn.PgError](err)
	return ok && said.Code == notAvailable
}
