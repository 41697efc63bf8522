// SPDX-License-Identifier: Apache-2.0

package pgstore

import (
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/calendars"
)

// A mixedCall is a call of the function take, which handles asks of any kind.
type mixedCall struct {
	*batch
	asks []*ask

	keys    []string
	limits  []bucket.Limit
	program []int64
	ids     []string

	windows calendars.Call
	needs   bool // the answer asked for windows
}

const (
	opTake      = 1
	opRefund    = 2
	opPenalties = 3 // of the next take
)

// Special waits; other values are microseconds.
const (
	waitForced = -2
	waitNone   = -1
)

// noTake is the cost of the take that an admin refund cancels.
const noTake = -1

// take makes the call, and repeats it if it needs windows of calendars.
func (g *mixedCall) take(ctx context.Context, conn *pgx.Conn) error {
	g.windows.Reset(g.expectedTime())
	for range calendars.MaxCalls {
		if err := g.takeOnce(ctx, conn); err != nil || !g.needs {
			return err
		}
	}
	return newNotSpent(calendars.ErrClocks)
}

func (g *mixedCall) takeOnce(ctx context.Context, conn *pgx.Conn) error {
	g.encode()
	p := &g.packet
	g.beginPacket()
	p.beginArray(pgtype.ByteaOID, len(g.ids))
	for _, id := range g.ids {
		p.appendText("", id)
	}
	g.addCalendars()
	p.addBool(g.isReadOnly() || g.store.looksFirst())
	g.addLockTimeout()
	var broken error
	err := g.store.query(ctx, conn, &g.store.statements.take, p.end(), func(row [][]byte) {
		broken = g.readAnswers(row)
	})
	if err != nil {
		return err
	}
	g.store.markWarm(conn)
	return broken
}

// beginPacket adds the first five parameters of the functions take and hold.
func (g *mixedCall) beginPacket() {
	p := &g.packet
	p.reset()
	p.addInt(g.clock)
	p.beginArray(pgtype.ByteaOID, len(g.keys))
	for _, k := range g.keys {
		p.appendText(g.store.config.Prefix, k)
	}
	p.beginArray(pgtype.TextOID, len(g.limits))
	for i := range g.limits {
		p.appendText(limVersion, g.limits[i].Encode())
	}
	p.beginArray(pgtype.Int8OID, 8*len(g.limits))
	for i := range g.limits {
		g.addLimit(&g.limits[i])
	}
	p.addInts(g.program)
}

func (g *mixedCall) encode() {
	g.keys, g.limits, g.program, g.ids = g.keys[:0], g.limits[:0], g.program[:0], g.ids[:0]
	for _, a := range g.asks {
		for i := range a.charges {
			g.keys = append(g.keys, a.charges[i].Key)
		}
	}
	slices.Sort(g.keys) // the locking order
	g.keys = slices.Compact(g.keys)
	for _, a := range g.asks {
		if a.refund {
			g.program = append(g.program, opRefund, g.addID(a), int64(len(a.charges)))
		} else {
			g.program = appendPenalties(g.program, a.charges)
			g.program = append(g.program, opTake, encodeMode(a.mode), encodeWait(a.mode.MaxWait), g.addID(a), int64(len(a.charges)))
		}
		for i := range a.charges {
			c := &a.charges[i]
			key, _ := slices.BinarySearch(g.keys, c.Key)
			g.program = append(g.program, int64(key)+1, g.limitNumber(&c.Limit), int64(c.Cost))
			high, low := slotHalves(c.Slot)
			switch {
			case !a.refund && c.Limit.Algorithm() != bucket.AlgorithmConcurrency:
				g.program = append(g.program, max(c.Await.Microseconds(), 0), 0)
			case !a.refund:
				g.program = append(g.program, high, low)
			case c.Limit.Algorithm() == bucket.AlgorithmConcurrency:
				g.program = append(g.program, noTake, high, low)
			default:
				g.program = append(g.program, encodeTaken(a.taken[i])...)
			}
		}
	}
}

func (g *mixedCall) addID(a *ask) int64 {
	if a.mode.ID == "" {
		return 0
	}
	g.ids = append(g.ids, string(a.memory[:]))
	return int64(len(g.ids))
}

func encodeTaken(t bucket.Taken) []int64 {
	if t == (bucket.Taken{}) {
		return []int64{noTake, 0, 0}
	}
	return []int64{int64(t.Cost), int64(t.At), t.Spent}
}

// limitNumber returns the number of a limit. Most limits are among the last few.
func (g *mixedCall) limitNumber(l *bucket.Limit) int64 {
	const few = 8
	for i := len(g.limits) - 1; i >= max(len(g.limits)-few, 0); i-- {
		if g.limits[i] == *l {
			return int64(i) + 1
		}
	}
	g.limits = append(g.limits, *l)
	return int64(len(g.limits))
}

func (g *mixedCall) addLimit(l *bucket.Limit) {
	tokens, per := l.Refill()
	n := int64(tokens)
	if n == 0 { // the zero Limit holds nothing
		n, per = 1, 1
	}
	for _, v := range [...]int64{int64(l.Algorithm()), int64(l.Capacity()), n, per, int64(l.MaxReserved()),
		l.Start().Microseconds(), boolInt(l.Anchor() == bucket.AnchorFirst), boolInt(l.Queued())} {
		g.packet.appendInt(v)
	}
}

func (g *mixedCall) isReadOnly() bool {
	return !slices.ContainsFunc(g.asks, func(a *ask) bool { return !a.mode.DryRun })
}

func encodeMode(mode mete.Mode) int64 {
	return boolInt(mode.DryRun) + 2*boolInt(mode.UpTo) + 4*boolInt(mode.Renew)
}

func boolInt(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

func encodeWait(wait time.Duration) int64 {
	switch {
	case wait == bucket.Forced:
		return waitForced
	case wait == 0:
		return waitNone
	}
	return min(max(wait, 0), bucket.LongestWait).Microseconds()
}
