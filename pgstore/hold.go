// SPDX-License-Identifier: Apache-2.0

package pgstore

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/calendars"
	"github.com/metehq/mete/store"
)

// MaxHolds bounds the holds of a table, by PostgreSQL's estimate of its rows: open ones, and ended ones within
// [store.RetryHorizon]. At the bound, [Store.Hold] returns [store.ErrTooManyHolds].
const MaxHolds = 1 << 18

var _ store.Holder = (*Store)(nil)

// Hold implements [store.Holder]. It ignores a transaction in ctx, because other processes could not settle the hold
// before the commit.
func (s *Store) Hold(ctx context.Context, dst []bucket.Snapshot, charges []store.Charge, mode mete.Mode, h store.Hold) ([]bucket.Snapshot, string, error) {
	if err := h.Check(charges); err != nil {
		return dst, "", withOp(newNotSpent(err), "hold")
	}
	a := s.newAsk(charges, mete.Mode{MaxWait: mode.MaxWait})
	for i := range a.charges {
		a.charges[i].Await = 0 // a hold has a history of its own
	}
	defer a.release()
	g := mixedCall{batch: newBatch(s), asks: []*ask{a}}
	g.Reset()
	g.windows.Reset(g.expectedTime())
	refusal := ""
	err := s.callHold(ctx, mode.Within, &g, func(ctx context.Context, conn *pgx.Conn) error {
		a.mode.ID = ""
		g.encode()
		a.mode.ID = h.ID // the answer shows the buckets after the take
		p := &g.packet
		g.beginPacket()
		s.addHoldID(p, h.ID)
		p.addBytes("", store.HashHoldID(h.ID))
		p.addInt(h.TTL.Microseconds())
		p.addBool(h.Refund)
		p.addInt(store.RetryHorizon.Microseconds())
		p.addInts(termNumbers(h.Terms))
		g.addCalendars()
		var broken error
		err := s.query(ctx, conn, &s.statements.hold, p.end(), func(row [][]byte) {
			if len(row) != 3 {
				broken = &AnswerError{"the row does not have three columns"}
			} else if refusal = string(row[2]); refusal == "" || refusal == refusedSlots {
				broken = g.readAnswers(row[:2])
			}
		})
		if err == nil {
			err = broken
		}
		return err
	})
	switch {
	case err != nil:
		return dst, "", withOp(err, "hold")
	case refusal == "full":
		return dst, "", withOp(newNotSpent(store.ErrTooManyHolds), "hold")
	case refusal == refusedSlots:
		allowed, err := s.takeSlotsAgain(ctx, charges, a.snaps, mode.Within)
		if err != nil {
			return dst, "", err
		}
		a.allowed = allowed
	case refusal != "":
		return dst, "", withOp(newNotSpent(store.ErrHoldKeys), "hold")
	}
	id := ""
	if a.allowed {
		id = h.ID
	}
	return append(dst, a.snaps...), id, nil
}

// refusedSlots is the refusal of a repeated hold with an ended slot. Its answer is valid.
const refusedSlots = "slots"

// takeSlotsAgain takes the slots of a repeated hold again. For a denial it fills in their snapshots.
func (s *Store) takeSlotsAgain(ctx context.Context, charges []store.Charge, snaps []bucket.Snapshot, within time.Duration) (bool, error) {
	slots := slices.DeleteFunc(slices.Clone(charges), func(c store.Charge) bool { return c.Limit.Algorithm() != bucket.AlgorithmConcurrency })
	a := s.newAsk(slots, mete.Mode{Within: within})
	if err := s.run(ctx, a, "hold"); err != nil {
		return false, err
	}
	defer a.release()
	for i, next := 0, 0; i < len(charges) && !a.allowed; i++ {
		if charges[i].Limit.Algorithm() == bucket.AlgorithmConcurrency {
			snaps[i] = a.snaps[next]
			next++
		}
	}
	return a.allowed, nil
}

func termNumbers(terms []store.Terms) (n []int64) {
	for i := range terms {
		t := &terms[i]
		n = append(n, boolInt(t.Kept), int64(t.Fixed), int64(t.Asked), int64(t.Unit))
	}
	return n
}

// addHoldID adds the ID of a row of a hold. A reader of the table cannot settle the hold, because it is a hash.
func (s *Store) addHoldID(p *packet, id string) {
	key := s.memoryKey("hold", id, nil)
	p.addBytes("", string(key[:]))
}

// callHold runs one call of a function on a connection of its own. It repeats the call if it needs windows of calendars.
func (s *Store) callHold(ctx context.Context, within time.Duration, g *mixedCall, f func(context.Context, *pgx.Conn) error) error {
	if within <= 0 || within > s.config.Timeout {
		within = s.config.Timeout
	}
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	conn, err := s.pool.Acquire(ctx)
	if err != nil {
		return newNotSpent(err)
	}
	defer conn.Release()
	for range calendars.MaxCalls {
		g.needs = false // a refusal leaves it
		if err := s.retry(ctx, conn.Conn(), f); err != nil || !g.needs {
			return err
		}
	}
	return newNotSpent(calendars.ErrClocks)
}

// Settle implements [store.Holder]. It ignores a transaction in ctx.
func (s *Store) Settle(ctx context.Context, id string, actual ...bucket.Tokens) (store.HoldStatus, error) {
	if err := store.CheckSettlement(actual...); err != nil {
		return store.HoldStatus{}, withOp(newNotSpent(err), "settle")
	}
	return s.endHold(ctx, id, actual, 0, "settle")
}

// Renew implements [store.Holder]. It ignores a transaction in ctx.
func (s *Store) Renew(ctx context.Context, id string, ttl time.Duration) (store.HoldStatus, error) {
	if err := store.CheckHoldTTL(ttl); err != nil {
		return store.HoldStatus{}, withOp(newNotSpent(err), "renew")
	}
	return s.endHold(ctx, id, nil, ttl, "renew")
}

func (s *Store) endHold(ctx context.Context, id string, actual []bucket.Tokens, ttl time.Duration, op string) (status store.HoldStatus, err error) {
	if len(id) > store.MaxIDBytes || strings.ContainsRune(id, 0) {
		return status, nil
	}
	amounts := make([]int64, len(actual))
	for i, amount := range actual {
		amounts[i] = int64(amount)
	}
	g := mixedCall{batch: newBatch(s)}
	g.Reset()
	g.windows.Reset(g.expectedTime())
	err = s.callHold(ctx, 0, &g, func(ctx context.Context, conn *pgx.Conn) error {
		p := &g.packet
		p.reset()
		p.addInt(g.clock)
		s.addHoldID(p, id)
		p.addInts(amounts)
		p.addInt(ttl.Microseconds())
		p.addInt(store.RetryHorizon.Microseconds())
		g.addCalendars()
		var n []int64
		var names []string
		whole := false
		err := s.query(ctx, conn, &s.statements.settle, p.end(), func(row [][]byte) {
			whole = len(row) == 2 && readElements(row[0], func(e []byte) {
				v, _ := readInt(e)
				n = append(n, v)
			}) && readElements(row[1], func(e []byte) { names = append(names, string(e)) })
		})
		if g.needs = err == nil && len(names) > 0; g.needs {
			return g.learnWindows(n, names)
		}
		if err == nil && (!whole || len(n) != 4) {
			err = &AnswerError{fmt.Sprintf("a hold has %d numbers", len(n))}
		}
		if err == nil {
			status = store.HoldStatus{State: store.HoldState(n[0]), Expires: bucket.Instant(n[1]), Actual: bucket.Tokens(n[2]), Settled: n[3] == 1}
		}
		return err
	})
	if err != nil {
		return store.HoldStatus{}, withOp(err, op)
	}
	return status, nil
}
