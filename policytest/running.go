// SPDX-License-Identifier: Apache-2.0

package policytest

import (
	"container/heap"
	"context"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/policy"
)

// A request was admitted and still runs. Its process renews the slots.
type request struct {
	at, end  bucket.Instant // at is the time of the next renewal, or end
	response policy.Response
	reserved *mete.Reservation
}

// requests is a heap by the time of the next event.
type requests []request

func (q requests) Len() int           { return len(q) }
func (q requests) Less(i, j int) bool { return q[i].at < q[j].at }
func (q requests) Swap(i, j int)      { q[i], q[j] = q[j], q[i] }
func (q *requests) Push(x any)        { *q = append(*q, x.(request)) }
func (q *requests) Pop() any {
	last := (*q)[len(*q)-1]
	*q = (*q)[:len(*q)-1]
	return last
}

// start begins the n'th request of s now, and ends it at once if it does not run.
func (r *runner) start(ctx context.Context, s *Step, n int, reserved *mete.Reservation) error {
	response := s.Response
	response.Model = s.Attributes(n)["ai:model"]
	if s.Runs <= 0 || !reserved.Allowed {
		return reserved.Finish(ctx, response)
	}
	q := request{end: r.now.Add(s.Runs), response: response, reserved: reserved}
	q.at = q.next(r.now)
	heap.Push(&r.running, q)
	return nil
}

// next returns the time of the next event after now. A renewal comes a microsecond before the end of the lease.
func (q *request) next(now bucket.Instant) bucket.Instant {
	if lease := q.reserved.Slots.Lease(); lease > 0 {
		return min(q.end, now.Add(lease-time.Microsecond))
	}
	return q.end
}

// advance moves the clock to an instant, and renews and ends requests on the way.
func (r *runner) advance(ctx context.Context, to bucket.Instant) error {
	for len(r.running) > 0 && r.running[0].at <= to {
		q := &r.running[0]
		if r.now = q.at; r.now < q.end {
			if err := q.reserved.Slots.Renew(ctx); err != nil {
				return err
			}
			q.at = q.next(r.now)
			heap.Fix(&r.running, 0)
			continue
		}
		ended := heap.Pop(&r.running).(request)
		if err := ended.reserved.Finish(ctx, ended.response); err != nil {
			return err
		}
	}
	r.now = to
	return nil
}
