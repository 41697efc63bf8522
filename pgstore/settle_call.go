// SPDX-License-Identifier: Apache-2.0

package pgstore

import (
	"context"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
)

// A settleCall is a call of the function take_and_settle. It handles takes that await their settlement, takes that no group
// has, and cancellations, of one token bucket each. It is several times faster than the function take. Rows in an unusual
// state, such as a debt, get no answer, and the function take handles their asks.
type settleCall struct {
	*batch
	asks   []*ask
	rounds []int64 // their ends
	limits []rate
	which  []int64 // the limit of each ask
}

// isSettleable reports whether the function take_and_settle handles a. The units of its amounts fit in an int64.
func (a *ask) isSettleable() bool {
	if len(a.charges) != 1 || a.mode != (mete.Mode{Within: a.mode.Within}) {
		return false
	}
	c := &a.charges[0]
	n, _ := c.Limit.Refill()
	cost := c.Cost
	if a.refund {
		cost = a.canceledTake().Cost
	}
	return c.Limit.Algorithm() == bucket.AlgorithmContinuous && !c.Limit.Queued() && n > 0 && c.Penalty == nil && c.Cost > 0 && 0 < cost && cost <= c.Limit.Capacity()
}

// takeSettleable makes the call for the settleable asks, and for plain takes without an answer, such as those from a bucket with
// a history. Asks without an answer are marked for a retry. After an error, none is: the call may have charged them.
func (b *batch) takeSettleable(ctx context.Context, conn *pgx.Conn) error {
	g := &b.settle
	g.asks = g.asks[:0]
	for i, a := range b.asks {
		if b.places[i] == settleable || b.places[i] >= 0 && a.retryMixed {
			g.asks = append(g.asks, a)
		}
	}
	if len(g.asks) == 0 {
		return nil
	}
	g.sort()
	if conn.IsClosed() || ctx.Err() != nil {
		for _, a := range g.asks {
			a.retryMixed = true
		}
		return nil
	}
	err := b.store.retry(ctx, conn, g.run)
	if err != nil {
		for _, a := range g.asks {
			a.Err, a.retryMixed = err, false
		}
		return err
	}
	denied, takes := 0, 0
	for _, a := range g.asks {
		if !a.refund && !a.retryMixed {
			takes++
			denied += int(boolInt(!a.allowed))
		}
	}
	if takes > 0 {
		b.store.noteDenials(denied, takes)
	}
	return nil
}

// sort divides the asks into rounds. A round has one ask of each key, and the first round has all keys, in the locking order.
func (g *settleCall) sort() {
	g.rounds = g.rounds[:0]
	slices.SortStableFunc(g.asks, func(x, y *ask) int { return strings.Compare(x.charges[0].Key, y.charges[0].Key) })
	for left := g.asks; len(left) > 0; {
		n := 0 // the asks of the round
		for i := range left {
			if n == 0 || left[i].charges[0].Key != left[n-1].charges[0].Key {
				moved := left[i]
				copy(left[n+1:i+1], left[n:i]) // the others keep their order
				left[n] = moved
				n++
			}
		}
		g.rounds = append(g.rounds, int64(len(g.asks)-len(left)+n))
		left = left[n:]
	}
}

func (g *settleCall) run(ctx context.Context, conn *pgx.Conn) error {
	if s := g.store; len(g.asks) == 1 && !g.asks[0].retryMixed && g.clock < 0 && !s.looksFirst() && !g.isHeldLane() && !s.unprepared.Load() {
		if err := g.runAlone(ctx, conn, g.asks[0]); err != nil || !g.asks[0].retryMixed {
			return err
		}
	}
	limits, which := g.limits[:0], g.which[:0]
	for _, a := range g.asks {
		a.retryMixed, a.Err = true, nil
		l := &a.charges[0].Limit
		at := slices.IndexFunc(limits, func(r rate) bool { return *r.limit == *l })
		if at < 0 {
			at = len(limits)
			limits = append(limits, newRate(l, 0))
		}
		which = append(which, int64(at)+1)
	}
	g.limits, g.which = limits, which
	p := &g.packet
	p.reset()
	p.addInt(g.clock)
	p.addInts(g.rounds)
	p.beginArray(pgtype.ByteaOID, len(g.asks))
	for _, a := range g.asks {
		p.appendText(g.store.config.Prefix, a.charges[0].Key)
	}
	p.addInts(which)
	for _, field := range settleFields {
		p.beginArray(pgtype.Int8OID, len(g.asks))
		for _, a := range g.asks {
			p.appendInt(field(a))
		}
	}
	p.beginArray(pgtype.TextOID, len(limits))
	for i := range limits {
		p.appendText(limVersion, limits[i].limit.Encode())
	}
	for _, field := range rateFields[:2] {
		p.beginArray(pgtype.Int8OID, len(limits))
		for i := range limits {
			p.appendInt(field(&limits[i]))
		}
	}
	p.addBool(true)
	g.addLockTimeout()
	return g.store.query(ctx, conn, &g.store.statements.takeAndSettle, p.end(), g.readRow)
}

// runAlone is run for one ask that the store can probably decide. The prepared statement is faster than the function.
func (g *settleCall) runAlone(ctx context.Context, conn *pgx.Conn, a *ask) error {
	r := newRate(&a.charges[0].Limit, 0)
	p := &g.packet
	p.reset()
	p.addBytes(g.store.config.Prefix, a.charges[0].Key)
	for _, field := range settleFields {
		p.addInt(field(a))
	}
	p.addBytes(limVersion, r.limit.Encode())
	p.addInt(r.c)
	p.addInt(r.n)
	g.addLockTimeout()
	a.retryMixed = true
	return g.store.query(ctx, conn, &g.store.statements.settleAlone, p.end(), func(row [][]byte) {
		if len(row) == 4 {
			a.readSettled(row)
		}
	})
}

// settleFields are the amount and the await of a take, and the cost, the amount and the instant of the take that a cancellation
// returns.
var settleFields = [...]func(*ask) int64{
	func(a *ask) int64 {
		if a.refund {
			return 0
		}
		return int64(a.charges[0].Cost) * a.charges[0].Limit.Unit()
	},
	func(a *ask) int64 { return max(a.charges[0].Await.Microseconds(), 0) },
	func(a *ask) int64 { return int64(a.canceledTake().Cost) * a.charges[0].Limit.Unit() },
	func(a *ask) int64 {
		return int64(min(a.charges[0].Cost, a.canceledTake().Cost)) * a.charges[0].Limit.Unit()
	},
	func(a *ask) int64 { return int64(a.canceledTake().At) },
}

// canceledTake returns the take that a refund cancels.
func (a *ask) canceledTake() bucket.Taken {
	if !a.refund {
		return bucket.Taken{}
	}
	return a.taken[0]
}

// readRow reads the answer to one ask. Only the first row of an ask with a charge counts.
func (g *settleCall) readRow(row [][]byte) {
	if len(row) != 5 {
		return
	}
	at, ok := readInt(row[0])
	if !ok || at < 1 || at > int64(len(g.asks)) || !g.asks[at-1].retryMixed {
		return
	}
	g.asks[at-1].readSettled(row[1:])
}

// readSettled reads the numbers of a take, or the end of a refund.
func (a *ask) readSettled(row [][]byte) {
	if a.refund {
		a.retryMixed = false
		return
	}
	var t outcome
	t.readRow(&a.charges[0].Limit, row...)
	t.state.Spent -= t.took
	t.replay(a)
}
