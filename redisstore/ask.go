// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/lane"
	"github.com/metehq/mete/internal/lease"
	"github.com/metehq/mete/store"
)

// An ask is one operation on its way to Redis and back. Its caller waits, and the call that carries the ask fills
// in the answer.
type ask struct {
	lane.Ticket

	op      int // opTake also stands for simple takes
	charges []store.Charge
	taken   []bucket.Taken // of the refunds; empty is an admin refund
	limits  []int          // places of the charges' limits in the program
	leases  []string
	beside  []string // keys of the charges' penalties; empty without any
	starts  bool     // a dry run starts penalties
	memory  string   // key that remembers the take, or empty
	attempt string   // attempt that may undo the take, or empty
	mode    mete.Mode
	loan    lease.Loan
	hold    *holdAsk // of a hold, or nil

	retryAlone bool // no answer yet: retry in a call of its own

	snaps   []bucket.Snapshot
	allowed bool
	grant   lease.Grant
}

var asks = sync.Pool{New: func() any { return new(ask) }}

// newAsk returns an ask with a copy of the charges, because the ask can outlive the caller's slice.
func newAsk(op int, charges []store.Charge, mode mete.Mode) *ask {
	a := asks.Get().(*ask)
	a.op, a.mode = op, mode
	a.charges = append(a.charges[:0], charges...)
	for len(a.limits) < len(charges) {
		a.limits = append(a.limits, 0)
	}
	return a
}

func newRefund(refunds []mete.Refund) *ask {
	a := newAsk(opGiveBack, nil, mete.Mode{})
	for i := range refunds {
		a.charges, a.taken = append(a.charges, refunds[i].Charge), append(a.taken, refunds[i].Taken)
		if len(a.limits) < len(a.charges) {
			a.limits = append(a.limits, 0)
		}
	}
	return a
}

func (a *ask) release() {
	clear(a.charges)
	a.charges, a.taken, a.snaps, a.leases, a.beside = a.charges[:0], a.taken[:0], a.snaps[:0], a.leases[:0], a.beside[:0]
	a.starts = false
	a.memory, a.attempt, a.mode, a.loan, a.hold = "", "", mete.Mode{}, lease.Loan{}, nil
	a.retryAlone, a.allowed, a.grant, a.Err = false, false, lease.Grant{}, nil
	asks.Put(a)
}

// submit waits for the answer to a. If it returns an error, the caller no longer owns a.
func (a *ask) submit(ctx context.Context, l *lane.Lane[*ask], within time.Duration) error {
	free, err := l.Do(ctx, a, within)
	if err != nil && free {
		a.release()
	}
	return err
}

// isSimple reports whether a is a plain take of one bucket. Such takes are grouped by bucket.
func (a *ask) isSimple() bool {
	return a.op == opTake && a.hold == nil && len(a.charges) == 1 && a.memory == "" && len(a.leases) == 0 &&
		a.mode.MaxWait == 0 && !a.mode.DryRun && !a.mode.UpTo && kindOf(&a.charges[0].Limit) == states && a.charges[0].Penalty == nil && a.charges[0].Await <= 0
}

// isPlain reports whether a is a take of token buckets without a mode, memory or lease.
func (a *ask) isPlain() bool {
	if a.op != opTake || a.hold != nil || a.memory != "" || len(a.leases) > 0 || a.mode.MaxWait != 0 || a.mode.DryRun || a.mode.UpTo {
		return false
	}
	for i := range a.charges {
		if c := &a.charges[i]; c.Penalty != nil || c.Await > 0 || c.Cost == 0 || c.Limit.Algorithm() != bucket.AlgorithmContinuous || c.Limit.Queued() || c.Limit.Capacity() == 0 {
			return false
		}
	}
	return true
}

// isSettleable reports whether take_settle.lua handles a. It may be a take, which may await its settlement, or a cancellation.
func (a *ask) isSettleable() bool {
	if a.op != opTake && a.op != opGiveBack || len(a.charges) != 1 || a.hold != nil || a.memory != "" || a.attempt != "" || len(a.leases) > 0 ||
		a.mode != (mete.Mode{Within: a.mode.Within}) {
		return false
	}
	c := &a.charges[0]
	if a.op == opGiveBack && a.taken[0] == (bucket.Taken{}) {
		return false
	}
	return c.Penalty == nil && c.Cost > 0 && c.Limit.Algorithm() == bucket.AlgorithmContinuous && !c.Limit.Queued() && c.Limit.Capacity() > 0
}

// awaits reports whether a take has a charge that awaits its settlement. A hold has a history of its own.
func (a *ask) awaits() bool {
	return a.hold == nil && slices.ContainsFunc(a.charges, func(c store.Charge) bool { return c.Await > 0 })
}
