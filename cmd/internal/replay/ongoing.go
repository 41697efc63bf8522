// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"container/heap"
	"context"
	"errors"
	"fmt"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
)

// An ongoing request of a trace has a duration. It renews its slots until it ends.
type ongoing struct {
	next, end bucket.Instant // next is the instant of the next renewal, or end
	order     int            // among requests with the same next
	slots     *mete.Slots    // nil for none
	finish    func(context.Context) error
}

// maxOngoing bounds the memory for requests that have not ended.
const maxOngoing = 1 << 20

// renewalsPerLease is the number of renewals in a lease, as in the gateway.
const renewalsPerLease = 3

// schedule sets the next instant after now.
func (o *ongoing) schedule(now bucket.Instant) {
	if o.next = o.end; o.slots != nil {
		o.next = min(o.end, now.Add(o.slots.Lease()/renewalsPerLease))
	}
}

// ongoings is a heap in the order of time.
type ongoings []*ongoing

func (o ongoings) Len() int      { return len(o) }
func (o ongoings) Swap(i, j int) { o[i], o[j] = o[j], o[i] }
func (o *ongoings) Push(x any)   { *o = append(*o, x.(*ongoing)) }
func (o ongoings) Less(i, j int) bool {
	return o[i].next < o[j].next || o[i].next == o[j].next && o[i].order < o[j].order
}

func (o *ongoings) Pop() any {
	last := len(*o) - 1
	x := (*o)[last]
	(*o)[last] = nil
	*o = (*o)[:last]
	return x
}

// add adds a request that has begun at now.
func (o *ongoings) add(one *ongoing, now bucket.Instant) error {
	if len(*o) == maxOngoing {
		return fmt.Errorf("more than %d requests have not ended: shorten their durations, or replay a part of the trace", maxOngoing)
	}
	one.schedule(now)
	heap.Push(o, one)
	return nil
}

// advance ends the requests that end until to, and renews the slots of others, each at its instant on the clock that set
// sets.
func (o *ongoings) advance(ctx context.Context, to bucket.Instant, set func(bucket.Instant)) error {
	for len(*o) > 0 && (*o)[0].next <= to {
		first := (*o)[0]
		set(first.next)
		if first.next == first.end {
			heap.Pop(o)
			if err := first.finish(ctx); err != nil {
				return err
			}
			continue
		}
		if err := first.slots.Renew(ctx); err != nil && !errors.Is(err, mete.ErrSlotEnded) {
			return err
		}
		first.schedule(first.next)
		heap.Fix(o, 0)
	}
	return nil
}
