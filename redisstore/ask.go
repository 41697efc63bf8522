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

// An ask is one operation on its way to Redis and back. Who made it waits for
// it; the call it goes in fills in the answer.
type ask struct {
	lane.Ticket

	op      int // opTake also stands for what is simple
	charges []store.Charge
	taken   []bucket.Taken // what is given back; empty is an administrator's refund
	limits  []int          // places of the charges' limits in the program
	leases  []string
	memory  string // the key that the take is remembered under, or empty
	attempt string // who may undo it, or empty
	mode    mete.Mode
	loan    lease.Loan

	again bool // it has no answer, and is to be asked alone

	snaps   []bucket.Snapshot
	allowed bool
	grant   lease.Grant
}

var asks = sync.Pool{New: func() any { return new(ask) }}

// newAsk returns an ask with a copy of the charges: it may live longer than the
// call it is made for.
func newAsk(op int, charges []store.Charge, mode mete.Mode) *ask {
	a := asks.Get().(*ask)
	a.op, a.mode = op, mode
	a.charges = append(a.charges[:0], charges...)
	for len(a.limits) < len(charges) {
		a.limits = append(a.limits, 0)
	}
	return a
}

// newGiveBack returns the ask for refunds.
func newGiveBack(refunds []mete.Refund) *ask {
	a := newAsk(opGiveBack, nil, mete.Mode{})
	for i := range refunds {
		a.charges, a.taken = append(a.charges, refunds[i].Charge), append(a.taken, refunds[i].Taken)
		if len(a.limits) < len(a.charges) {
			a.limits = append(a.limits, 0)
		}
	}
	return a
}

// release puts back an ask that has been answered.
func (a *ask) release() {
	clear(a.charges)
	a.charges, a.taken, a.snaps, a.leases = a.charges[:0], a.taken[:0], a.snaps[:0], a.leases[:0]
	a.memory, a.attempt, a.mode, a.loan = "", "", mete.Mode{}, lease.Loan{}
	a.again, a.allowed, a.grant, a.Err = false, false, lease.Grant{}, nil
	asks.Put(a)
}

// do has a answered. Where it returns an error, a is not the caller's any more.
func (a *ask) do(ctx context.Context, l *lane.Lane[*ask], within time.Duration) error {
	free, err := l.Do(ctx, a, within)
	if err != nil && free {
		a.release()
	}
	return err
}

// simple reports whether a is a plain take of one bucket, which goes with others
// of the same bucket.
func (a *ask) simple() bool {
	return a.op == opTake && len(a.charges) == 1 && a.memory == "" && len(a.leases) == 0 &&
		a.mode.MaxWait == 0 && !a.mode.DryRun && !a.mode.UpTo && !isLog(&a.charges[0].Limit)
}

// plain reports whether a is a take of token buckets that needs nothing special.
func (a *ask) plain() bool {
	if a.op != opTake || a.memory != "" || len(a.leases) > 0 || a.mode.MaxWait != 0 || a.mode.DryRun || a.mode.UpTo {
		return false
	}
	for i := range a.charges {
		if c := &a.charges[i]; c.Cost == 0 || c.Limit.Algorithm() != bucket.Continuous || c.Limit.Queued() || c.Limit.Capacity() == 0 {
			return false
		}
	}
	return true
}
