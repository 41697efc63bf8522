// SPDX-License-Identifier: Apache-2.0

package lane

import (
	"context"
	"time"
)

// A Ticket is the state of an ask in a lane. The zero value is ready for use. A Ticket can be reused when
// [Lane.Do] returns a free ask.
type Ticket struct {
	// Err is the error of the ask, set by [Batch.Run]. [Lane.Do] resets it first, and returns it.
	Err error

	done  chan struct{} // receives one value with the answer; nil until needed
	timer *time.Timer   // nil until needed

	sent      bool // protected by the lane's mutex
	abandoned bool // the caller no longer waits; protected by the lane's mutex
}

// An Ask is one operation on a server: a pointer to a struct that embeds a [Ticket].
type Ask interface{ ticket() *Ticket }

func (t *Ticket) ticket() *Ticket { return t }

// wait returns nil when the ask is answered, or an error when ctx ends or a nonzero within has passed.
func (t *Ticket) wait(ctx context.Context, within time.Duration) error {
	var late <-chan time.Time
	if within > 0 {
		late = t.startTimer(within)
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

func (t *Ticket) startTimer(d time.Duration) <-chan time.Time {
	if t.timer == nil {
		t.timer = time.NewTimer(d)
	} else {
		t.timer.Reset(d)
	}
	return t.timer.C
}
