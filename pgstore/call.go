// SPDX-License-Identifier: Apache-2.0

package pgstore

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
)

// maxRetries bounds the tries of a statement that PostgreSQL rolls back because of a concurrent one. That happens
// if the database's isolation level is above read committed.
const maxRetries = 10

// Run implements [lane.Batch]. It sets a deadline on the connection, which is cheaper than a context.
func (b *batch) Run(timeout time.Duration) time.Duration {
	start := time.Now()
	conn, err := b.store.acquire(timeout)
	if err != nil {
		err = newNotSpent(err)
		for _, a := range b.asks {
			a.Err = err
		}
	} else {
		line := conn.Conn().PgConn().Conn()
		_ = line.SetDeadline(start.Add(timeout)) // fails on a closed connection
		b.setLockTimeout(timeout)
		err = b.runAvoidingLocks(context.Background(), conn.Conn())
		b.store.noticeSlowStart(conn.Conn(), err)
		if !conn.Conn().IsClosed() { // pgx resets the deadline of a closed connection
			_ = line.SetDeadline(time.Time{})
		}
		conn.Release()
	}
	took := time.Since(start)
	b.store.calls.Add(len(b.asks), took, err)
	return took
}

// runOn makes the calls on conn. It returns one of the errors of the asks.
func (b *batch) runOn(ctx context.Context, conn *pgx.Conn) error {
	var failed error
	if len(b.groups) > 0 {
		if failed = b.store.retry(ctx, conn, b.takePlain); failed != nil {
			b.fail(failed, func(i int) bool { return b.places[i] >= 0 })
		} else {
			b.replayGroups()
		}
	}
	if err := b.takeSettleable(ctx, conn); err != nil {
		failed = err
	}
	rest := b.appendRest(nil)
	switch {
	case len(rest) == 0:
	case conn.IsClosed() || ctx.Err() != nil:
		err := newNotSpent(errGone)
		if failed != nil {
			err = newNotSpent(fmt.Errorf("%w: %w", errGone, newStoreError(failed).Err))
		}
		for _, a := range rest {
			a.Err = err
		}
	default:
		if err := b.takeRest(ctx, conn, rest); err != nil {
			failed = err
		}
	}
	return failed
}

// takeRest makes the call for asks without a group. If a row is unreadable, each ask gets a call of its own, so
// that the others succeed.
func (b *batch) takeRest(ctx context.Context, conn *pgx.Conn, rest []*ask) error {
	g := mixedCall{batch: b, asks: rest}
	err := b.store.retry(ctx, conn, g.take)
	if err == nil {
		return nil
	}
	if len(rest) > 1 && isUnreadable(err) {
		var failed error
		for i := range rest {
			if alone := b.takeRest(ctx, conn, rest[i:i+1]); alone != nil {
				failed = alone
			}
		}
		return failed
	}
	for _, a := range rest {
		a.Err = err
	}
	return err
}

// retry calls f again while PostgreSQL rolls it back because of concurrent statements.
func (s *Store) retry(ctx context.Context, conn *pgx.Conn, f func(context.Context, *pgx.Conn) error) error {
	for try := 1; ; try++ {
		err := f(ctx, conn)
		if err == nil {
			return nil
		}
		if try == maxRetries || !isUndone(err) || s.joined || conn.IsClosed() || ctx.Err() != nil {
			return newStoreError(err)
		}
		if isSerialization(err) {
			s.isolated.Store(true)
		}
	}
}

func (b *batch) fail(err error, pick func(i int) bool) {
	for i, a := range b.asks {
		if pick(i) {
			a.Err = err
		}
	}
}

func (b *batch) takePlain(ctx context.Context, conn *pgx.Conn) error {
	for i := range b.groups {
		b.groups[i].answer = outcome{}
	}
	look := b.store.looksFirst()
	if len(b.groups) == 1 {
		return b.takeOne(ctx, conn, look)
	}
	order := make([]*group, len(b.groups))
	for i := range order {
		order[i] = &b.groups[i]
	}
	slices.SortFunc(order, func(x, y *group) int { return strings.Compare(x.key, y.key) })

	limits, which := make([]rate, 0, 8), make([]int64, len(order))
	for i, g := range order {
		r := newRate(g.limit, g.cost)
		few := limits[max(len(limits)-8, 0):] // most limits are among the last few
		at := slices.IndexFunc(few, func(x rate) bool { return x.cost == r.cost && *x.limit == *r.limit })
		if at >= 0 {
			at += max(len(limits)-8, 0)
		} else {
			at = len(limits)
			limits = append(limits, r)
		}
		which[i] = int64(at) + 1
	}
	p := &b.packet
	p.reset()
	p.addInt(b.clock)
	p.beginArray(pgtype.ByteaOID, len(order))
	for _, g := range order {
		p.appendText(b.store.config.Prefix, g.key)
	}
	p.addInts(which)
	p.beginArray(pgtype.Int8OID, len(order))
	for i, g := range order {
		p.appendInt(limits[which[i]-1].amount(g.count))
	}
	p.beginArray(pgtype.TextOID, len(limits))
	for i := range limits {
		p.appendText(limVersion, limits[i].limit.Encode())
	}
	for _, field := range rateFields {
		p.beginArray(pgtype.Int8OID, len(limits))
		for i := range limits {
			p.appendInt(field(&limits[i]))
		}
	}
	p.addBool(look)
	b.addLockTimeout()
	return b.store.query(ctx, conn, &b.store.statements.takeMany, p.end(), func(row [][]byte) {
		if len(row) == 5 && len(row[0]) >= len(b.store.config.Prefix) {
			if at, ok := b.index[string(row[0][len(b.store.config.Prefix):])]; ok {
				g := &b.groups[at]
				g.answer.readRow(g.limit, row[1:]...)
			}
		}
	})
}

func (b *batch) takeOne(ctx context.Context, conn *pgx.Conn, look bool) error {
	g := &b.groups[0]
	r := newRate(g.limit, g.cost)
	if g.count == 1 && b.clock < 0 && !look && !b.isHeldLane() && !b.store.unprepared.Load() {
		return b.takeAlone(ctx, conn, g, &r)
	}
	p := &b.packet
	p.reset()
	p.addInt(b.clock)
	p.addBytes(b.store.config.Prefix, g.key)
	p.addBytes(limVersion, g.limit.Encode())
	p.addInt(r.amount(g.count))
	for _, field := range rateFields {
		p.addInt(field(&r))
	}
	p.addBool(look)
	b.addLockTimeout()
	return b.store.query(ctx, conn, &b.store.statements.takeOne, p.end(), func(row [][]byte) {
		if len(row) == 4 { // the clock comes first
			g.answer.readRow(g.limit, row[1], row[2], row[3], row[0])
		}
	})
}

// takeAlone is takeOne for one take that will probably be admitted. The prepared statement is faster than the
// function. It returns no answer if the take is not admitted. The function take_and_settle then decides.
func (b *batch) takeAlone(ctx context.Context, conn *pgx.Conn, g *group, r *rate) error {
	p := &b.packet
	p.reset()
	p.addBytes(b.store.config.Prefix, g.key)
	for _, v := range [...]int64{r.cost, r.c, r.n} {
		p.addInt(v)
	}
	p.addBytes(limVersion, g.limit.Encode())
	b.addLockTimeout()
	return b.store.query(ctx, conn, &b.store.statements.takeAlone, p.end(), func(row [][]byte) {
		if len(row) == 4 {
			g.answer.readRow(g.limit, row...)
		}
	})
}

// A rate is a limit and a cost, in units of 1/p thousandth.
type rate struct {
	limit      *bucket.Limit
	c, n, cost int64
}

func newRate(l *bucket.Limit, cost bucket.Tokens) rate {
	n, p := l.Refill()
	return rate{l, int64(l.Capacity()) * p, int64(n), int64(cost) * p}
}

var rateFields = [...]func(*rate) int64{
	func(r *rate) int64 { return r.c },
	func(r *rate) int64 { return r.n },
	func(r *rate) int64 { return r.cost },
}

// amount returns the cost of count takes, at most the multiple of the cost that fits in a full bucket. Costs are
// below 2^53, so the product does not overflow.
func (r *rate) amount(count int64) int64 { return min(count, r.c/r.cost) * r.cost }

func (s *Store) looksFirst() bool { return s.denying.Load() }

// noteDenials records how many buckets (denied) of all buckets in a call (of) denied a take.
func (s *Store) noteDenials(denied, of int) {
	if looks := 4*denied >= of; looks != s.denying.Load() {
		s.denying.Store(looks)
	}
}

func newNotSpent(err error) *mete.StoreError {
	return &mete.StoreError{Store: storeName, Spent: mete.NotSpent, Err: err}
}
