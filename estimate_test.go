// SPDX-License-Identifier: Apache-2.0

package mete_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
)

const ms = time.Millisecond

// at sleeps until so long after the start.
func (l *line) at(after time.Duration) { time.Sleep(after - time.Since(l.begin)) }

func (l *line) patient(tokens int64, longest time.Duration) mete.Request {
	req := l.request(tokens)
	req.MaxWait = longest
	return req
}

// Waiters that left the queue do not count for later ones.
func TestWait_ForgetsTheCostOfThoseWhoLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLine(t, bucket.Spec{Capacity: 5 * bucket.Token, Rate: perSecond(1)})
		l.empty()
		first := l.enter(t.Context(), l.request(1))
		ctx, cancel := context.WithCancel(t.Context())
		second := l.enter(ctx, l.request(5))
		l.leaves("one that is too late", l.enter(t.Context(), l.patient(1, 3*time.Second)), 0, mete.ErrDeadlineTooSoon)
		cancel()
		l.leaves("the canceled", second, 0, context.Canceled)
		synctest.Wait()
		third := l.enter(t.Context(), l.patient(1, 3*time.Second))
		l.leaves("the first", first, time.Second, nil)
		l.leaves("the third", third, 2*time.Second, nil)
	})
}

// slowLine is an empty bucket behind a store with a latency of 10 ms.
func slowLine(t *testing.T) *line {
	l := newLine(t, bucket.Spec{Capacity: 5 * bucket.Token, Rate: perSecond(1)})
	l.empty()
	l.store.Store = slowStore{l.store.Store, 10 * ms}
	return l
}

// A waiter that probes in vain is queued before later waiters.
func TestWait_KeepsTheOrderOfArrival(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := slowLine(t)
		first := l.enter(t.Context(), l.request(1))
		l.at(5 * ms)
		beside := l.enter(t.Context(), l.request(1)) // hears at 15 ms that it must wait
		l.at(12 * ms)
		behind := l.enter(t.Context(), l.request(1))
		// The store knows the wait at once, and answers 10 ms later.
		l.leaves("the first", first, 1010*ms, nil)
		l.leaves("the second", beside, 2010*ms, nil)
		l.leaves("the third", behind, 3010*ms, nil)
	})
}

// A refund by the first waiter invalidates its answer. The next answer is passed on to all earlier waiters.
func TestWait_EstimatesAfresh(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := slowLine(t)
		ctx, cancel := context.WithCancel(t.Context())
		first := l.enter(ctx, l.request(50))
		l.at(20 * ms)
		second, third := l.enter(t.Context(), l.request(1)), l.enter(t.Context(), l.request(1))
		l.leaves("one that is too late", l.enter(t.Context(), l.patient(1, 5*time.Second)), 20*ms, mete.ErrDeadlineTooSoon)
		l.at(100 * ms)
		cancel()
		l.leaves("the canceled", first, 100*ms, context.Canceled)
		l.at(105 * ms)
		fourth := l.enter(t.Context(), l.patient(1, 5*time.Second))
		fifth := l.enter(t.Context(), l.patient(1, time.Second))
		l.leaves("one that cannot make it", fifth, 110*ms, mete.ErrDeadlineTooSoon)
		l.leaves("the second", second, 1010*ms, nil)
		l.leaves("the third", third, 2010*ms, nil)
		l.leaves("the fourth", fourth, 3010*ms, nil)
	})
}
