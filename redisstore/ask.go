// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"context"
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
	memory  string // key that remembers the take, or empty
	attempt string // attempt that may undo the take, or empty
	mode    mete.Mode
	loan    lease.Loan

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
	a.charges, a.taken, a.snaps, a.leases = a.charges[:0], a.taken[:0], a.snaps[:0], a.leases[:0]
	a.memory, a.attempt, a.mode, a.loan = "", "", mete.Mode{}, lease.Loan{}
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
	return a.op == opTake && len(a.charges) == 1 && a.memory == "" && len(a.leases) == 0 &&
		a.mode.MaxWait == 0 && !a.mode.DryRun && !a.mode.UpTo && !isLog(&a.charges[0].Limit)
}

// isPlain reports whether a is a take of token buckets without a mode, memory or lease.
func (a *ask) isPlain() bool {
	if a.op != opTake || a.memory != "" || len(a.leases) > 0 || a.mode.MaxWait != 0 || a.mode.DryRun || a.mode.UpTo {
		return false
	}
	for i := range a.charges {
		if c := &a.charges[i]; c.Cost == 0 || c.Limit.Algorithm() != bucket.AlgorithmContinuous || c.Limit.Queued() || c.Limit.Capacity() == 0 {
			return false
		}
	}
	return true
}
