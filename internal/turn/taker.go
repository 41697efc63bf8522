// SPDX-License-Identifier: Apache-2.0

package turn

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/policy"
)

// A Taker takes from a limiter and waits for turns. It is made by [NewTaker], and
// is safe for concurrent use.
type Taker struct {
	limiter *mete.Limiter
	most    time.Duration
	places  *places
	known   atomic.Pointer[queueing]
}

// A queueing remembers whether a policy has limits with a queue.
type queueing struct {
	policy *policy.Matcher
	queues bool
}

// NewTaker returns a taker that waits for so long at most, for [Most] if that is 0, and
// holds so many requests at a time, [MostHeld] if that is 0. Those of one bucket have a
// quarter of the places.
func NewTaker(limiter *mete.Limiter, most time.Duration, held int) *Taker {
	if most == 0 {
		most = Most
	}
	return &Taker{limiter: limiter, most: most, places: newPlaces(held)}
}

// Held returns how many requests are held now, and how many were denied because there
// was no place for one more.
func (t *Taker) Held() (now int, refused uint64) {
	t.places.mu.Lock()
	defer t.places.mu.Unlock()
	return t.places.taken, t.places.refused
}

// Take decides as the limiter's Take, and then waits: see [Await]. Where there is no
// place left to wait in, what the request spent is given back at once, and it is
// denied until it would not have to wait. queued says that the request brings limits with a queue. before, if not nil, is told how long the
// wait will be at most.
func (t *Taker) Take(ctx context.Context, req mete.Request, queued bool, before func(time.Duration)) (mete.Decision, error) {
	if !queued && !t.queues() {
		return t.limiter.Take(ctx, req) // which need not remember what it took
	}
	r, err := t.limiter.Reserve(ctx, req)
	if err != nil {
		return mete.Decision{}, err
	}
	if r.Allowed && r.Wait > 0 && r.Wait <= t.most {
		key := t.places.key(&r.Decision, &req)
		if !t.places.take(key) {
			_ = giveBack(ctx, r) // if the store fails, it is spent
			deny(&r.Decision, 0, 0)
			return r.Decision, nil
		}
		defer t.places.give(key)
	}
	if before != nil && r.Wait > 0 {
		before(min(r.Wait, t.most))
	}
	if err := Await(ctx, r, t.most); err != nil {
		return mete.Decision{}, err
	}
	return r.Decision, nil
}

// queues reports whether the policy may ask to wait.
func (t *Taker) queues() bool {
	p := t.limiter.Policy()
	if p == nil {
		return false
	}
	known := t.known.Load()
	if known == nil || known.policy != p {
		known = &queueing{p, p.Delays()}
		t.known.Store(known)
	}
	return known.queues
}
