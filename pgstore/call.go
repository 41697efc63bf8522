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
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
)

// maxRetries bounds how often a statement is tried that PostgreSQL has undone for
// the sake of another one, as it does where the database's isolation level is above
// read committed.
const maxRetries = 10

// Run implements [lane.Batch]. The deadline is the connection's own, as contexts cost
// more.
func (b *batch) Run(timeout time.Duration) time.Duration {
	start := time.Now()
	conn, err := b.store.acquire(timeout)
	if err != nil {
		err = notSpent(err)
		for _, a := range b.asks {
			a.Err = err
		}
	} else {
		line := conn.Conn().PgConn().Conn()
		_ = line.SetDeadline(start.Add(timeout)) // it fails where the connection is closed
		b.setPatience(timeout)
		err = b.runApart(context.Background(), conn.Conn())
		if !conn.Conn().IsClosed() { // else pgx has given it another
			_ = line.SetDeadline(time.Time{})
		}
		conn.Release()
	}
	took := time.Since(start)
	b.store.calls.Add(len(b.asks), took, err)
	return took
}

func (s *Store) acquire(timeout time.Duration) (*pgxpool.Conn, error) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	return s.pool.Acquire(ctx)
}

// runOn makes the calls on conn. The error is one of those that asks have got.
func (b *batch) runOn(ctx context.Context, conn *pgx.Conn) error {
	var failed error
	if len(b.groups) > 0 {
		if failed = b.store.retried(ctx, conn, b.takePlain); failed != nil {
			b.fail(failed, func(i int) bool { return b.places[i] >= 0 })
		} else {
			b.answerPlain()
		}
	}
	rest := b.rest(nil)
	switch {
	case len(rest) == 0:
	case conn.IsClosed() || ctx.Err() != nil:
		err := notSpent(errGone)
		if failed != nil {
			err = notSpent(fmt.Errorf("%w: %w", errGone, storeError(failed).Err))
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

// takeRest makes the call for those of no group. Where one of the rows cannot be read,
// each is asked for alone: the others are none the worse for it.
func (b *batch) takeRest(ctx context.Context, conn *pgx.Conn, rest []*ask) error {
	g := general{batch: b, asks: rest}
	err := b.store.retried(ctx, conn, g.take)
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

// retried calls f as long as it is undone for the sake of others.
func (s *Store) retried(ctx context.Context, conn *pgx.Conn, f func(context.Context, *pgx.Conn) error) error {
	for try := 1; ; try++ {
		err := f(ctx, conn)
		if err == nil {
			return nil
		}
		if try == maxRetries || !isUndone(err) || s.joined || conn.IsClosed() || ctx.Err() != nil {
			return storeError(err)
		}
		if isSerialization(err) {
			s.isolated.Store(true)
		}
	}
}

// fail gives an error to the asks that pick says.
func (b *batch) fail(err error, pick func(i int) bool) {
	for i, a := range b.asks {
		if pick(i) {
			a.Err = err
		}
	}
}

// takePlain makes the call for the groups.
func (b *batch) takePlain(ctx context.Context, conn *pgx.Conn) error {
	for i := range b.groups {
		b.groups[i].answer = outcome{}
	}
	look := b.store.looks()
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
		r := rateOf(g.limit, g.cost)
		few := limits[max(len(limits)-8, 0):] // mostly one of these
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
	p.int(b.clock)
	p.array(pgtype.ByteaOID, len(order))
	for _, g := range order {
		p.text(b.store.config.Prefix, g.key)
	}
	p.ints(which)
	p.array(pgtype.Int8OID, len(order))
	for i, g := range order {
		p.number(limits[which[i]-1].amount(g.count))
	}
	p.array(pgtype.TextOID, len(limits))
	for i := range limits {
		p.text(limVersion, limits[i].limit.Encode())
	}
	for _, field := range rateFields {
		p.array(pgtype.Int8OID, len(limits))
		for i := range limits {
			p.number(field(&limits[i]))
		}
	}
	p.bool(look)
	b.addPatience()
	return b.store.query(ctx, conn, &b.store.statements.takeMany, p.end(), func(row [][]byte) {
		if len(row) == 5 && len(row[0]) >= len(b.store.config.Prefix) {
			if at, ok := b.index[string(row[0][len(b.store.config.Prefix):])]; ok {
				g := &b.groups[at]
				g.answer.read(g.limit, row[1:]...)
			}
		}
	})
}

// takeOne is takePlain of one group.
func (b *batch) takeOne(ctx context.Context, conn *pgx.Conn, look bool) error {
	g := &b.groups[0]
	r := rateOf(g.limit, g.cost)
	if g.count == 1 && b.clock < 0 && !look && !b.waits() && !b.store.unprepared.Load() {
		if err := b.takeAlone(ctx, conn, g, &r); err != nil || g.answer.there {
			return err
		}
	}
	p := &b.packet
	p.reset()
	p.int(b.clock)
	p.key(b.store.config.Prefix, g.key)
	p.key(limVersion, g.limit.Encode())
	p.int(r.amount(g.count))
	for _, field := range rateFields {
		p.int(field(&r))
	}
	p.bool(look)
	b.addPatience()
	return b.store.query(ctx, conn, &b.store.statements.takeOne, p.end(), func(row [][]byte) {
		if len(row) == 4 { // the clock comes first
			g.answer.read(g.limit, row[1], row[2], row[3], row[0])
		}
	})
}

// takeAlone is takeOne of one take that will probably be admitted, in a statement that
// has to be prepared to be faster than the function. Where it is not admitted there
// is no answer.
func (b *batch) takeAlone(ctx context.Context, conn *pgx.Conn, g *group, r *rate) error {
	p := &b.packet
	p.reset()
	p.key(b.store.config.Prefix, g.key)
	for _, v := range [...]int64{r.cost, r.c, r.n} {
		p.int(v)
	}
	p.key(limVersion, g.limit.Encode())
	b.addPatience()
	return b.store.query(ctx, conn, &b.store.statements.takeAlone, p.end(), func(row [][]byte) {
		if len(row) == 4 {
			g.answer.read(g.limit, row...)
		}
	})
}

// A rate is a limit and a cost in units of 1/p thousandth.
type rate struct {
	limit      *bucket.Limit
	c, n, cost int64
}

func rateOf(l *bucket.Limit, cost bucket.Tokens) rate {
	n, p := l.Refill()
	return rate{l, int64(l.Capacity()) * p, int64(n), int64(cost) * p}
}

// rateFields are in the order of the parameters.
var rateFields = [...]func(*rate) int64{
	func(r *rate) int64 { return r.c },
	func(r *rate) int64 { return r.n },
	func(r *rate) int64 { return r.cost },
}

// amount is what count takes cost, as far as a full bucket has it. Costs are below
// 2^53, and so many do not wait.
func (r *rate) amount(count int64) int64 { return min(count, r.c/r.cost) * r.cost }

// looks says whether the last takes were denied so often that it is worth a look
// before anything is locked.
func (s *Store) looks() bool { return s.denying.Load() }

// learn notes how many of so many buckets denied.
func (s *Store) learn(denied, of int) {
	if looks := 4*denied >= of; looks != s.denying.Load() {
		s.denying.Store(looks)
	}
}

// notSpent is an error of what was not asked.
func notSpent(err error) *mete.StoreError {
	return &mete.StoreError{Store: storeName, Spent: mete.NotSpent, Err: err}
}
