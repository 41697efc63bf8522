// SPDX-License-Identifier: Apache-2.0

package queuewait

import (
	"context"
	"time"

	"github.com/metehq/mete"
)

// A Taker takes from a limiter and waits for turns. Create one with [NewTaker]. It is safe for concurrent use.
type Taker struct {
	limiter *mete.Limiter
	most    time.Duration
	slots   *slots
}

// NewTaker returns a taker. most is the maximum wait ([DefaultMaxWait] if 0). held is the maximum number of
// waiting requests ([DefaultMaxWaiting] if 0); those of one bucket may use a quarter of it.
func NewTaker(limiter *mete.Limiter, most time.Duration, held int) *Taker {
	if most == 0 {
		most = DefaultMaxWait
	}
	return &Taker{limiter: limiter, most: most, slots: newSlots(held)}
}

// Waiting returns the number of waiting requests, and the number denied because too many were waiting.
func (t *Taker) Waiting() (now int, refused uint64) {
	t.slots.mu.Lock()
	defer t.slots.mu.Unlock()
	return t.slots.taken, t.slots.refused
}

// Take decides like the limiter's Take, and then waits: see [Await]. If too many requests are waiting, it refunds
// the request and denies it until it would not have to wait. queued reports that the request itself has limits
// with a queue. before, if not nil, is called with the maximum wait.
func (t *Taker) Take(ctx context.Context, req mete.Request, queued bool, before func(time.Duration)) (mete.Decision, error) {
	d, _, err := t.Reserve(ctx, req, queued, before)
	return d, err
}

// Reserve is Take for callers that see the response. The reservation is nil unless it awaits the response.
func (t *Taker) Reserve(ctx context.Context, req mete.Request, queued bool, before func(time.Duration)) (mete.Decision, *mete.Reservation, error) {
	p := t.limiter.Policy()
	if !queued && (p == nil || !p.Delays() && !p.AwaitsResponse()) {
		d, err := t.limiter.Take(ctx, req) // cheaper, because it needs no refund
		return d, nil, err
	}
	r, err := t.limiter.Reserve(ctx, req)
	if err != nil {
		return mete.Decision{}, nil, err
	}
	if err := t.await(ctx, r, &req, before); err != nil {
		return mete.Decision{}, nil, err
	}
	if !r.AwaitsResponse() {
		return r.Decision, nil, nil
	}
	return r.Decision, r, nil
}

func (t *Taker) await(ctx context.Context, r *mete.Reservation, req *mete.Request, before func(time.Duration)) error {
	if r.Allowed && r.Wait > 0 && r.Wait <= t.most {
		key := t.slots.key(&r.Decision, req)
		if !t.slots.take(key) {
			_ = refund(ctx, r) // if the store fails, the tokens are lost
			deny(&r.Decision, 0, 0)
			return nil
		}
		defer t.slots.give(key)
	}
	if before != nil && r.Wait > 0 {
		before(min(r.Wait, t.most))
	}
	return Await(ctx, r, t.most)
}
