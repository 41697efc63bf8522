// SPDX-License-Identifier: Apache-2.0

package lane

import (
	"context"
	"time"
)

// A Ticket is what an ask has on it while it is on its way. The zero Ticket is
// ready for use, and may be used again once the ask is its caller's again.
type Ticket struct {
	// Err is what went wrong with the ask: for [Batch.Run] to set. [Lane.Do] begins
	// with nil, and returns it.
	Err error

	done  chan struct{} // one value when it has been answered; nil until it is needed
	timer *time.Timer   // nil until it is needed

	sent bool // guarded by the lane's mutex: too late to leave
	left bool // guarded by the lane's mutex: nobody waits for it
}

// An Ask is a pointer to a struct that has a [Ticket] embedded: one operation on
// its way to a server and back.
type Ask interface{ ticket() *Ticket }

func (t *Ticket) ticket() *Ticket { return t }

// wait returns when the ask has been answered, for which that is nil, ctx has ended
// or within, unless that is 0, has passed.
func (t *Ticket) wait(ctx context.Context, within time.Duration) error {
	var late <-chan time.Time
	if within > 0 {
		late = t.alarm(within)
		defer t.timer.Stop()
	} else if ctx.Done() == nil {
		<-t.done
		return nil
	}
	select {
	case <-t.done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-late:
		return errLate
	}
}

// alarm returns a channel that says when d has passed.
func (t *Ticket) alarm(d time.Duration) <-chan time.Time {
	if t.timer == nil {
		t.timer = time.NewTimer(d)
	} else {
		t.timer.Reset(d)
	}
	return t.timer.C
}
