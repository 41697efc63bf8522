// SPDX-License-Identifier: Apache-2.0

package lease

import (
	"time"

	"github.com/metehq/mete/bucket"
)

func (b *Borrower) runTicker() {
	defer b.flights.Done()
	ticker := time.NewTicker(b.config.Period)
	defer ticker.Stop()
	for {
		select {
		case <-b.done:
			return
		case <-ticker.C:
		}
		b.tick(b.now())
		b.mu.Lock()
		if len(*b.leased.Load()) == 0 {
			b.ticking = false
			b.mu.Unlock()
			return
		}
		b.mu.Unlock()
	}
}

func (b *Borrower) tick(now time.Duration) {
	for _, n := range *b.leased.Load() {
		if n.tryAcquire() {
			b.maintain(n, now)
		}
	}
}

// maintain performs due work for n, which the caller has acquired. It returns a slice if nothing was spent
// between three ticks. It resizes a slice that lasted for two periods, which also renews it long before its TTL.
func (b *Borrower) maintain(n *leasedBucket, now time.Duration) {
	switch {
	case n.retiring && now >= n.retired+b.config.TTL+b.config.Grace:
		// The entry has ended, or will soon. Its name is not reused.
		b.count.lost.Add(int64(n.setAside))
		b.count.setAside.Add(-int64(n.setAside))
		b.remove(n)
		return
	case n.retiring && now >= n.retry:
		b.exchange(n, now)
		return
	case n.retiring:
	case n.leaving.Load():
		b.retire(n, now)
		return
	case n.isIdle():
		b.retire(n, now)
		return
	case now-n.asked < 2*b.config.Period:
	case n.isCold(b.config.Period, now):
		b.retire(n, now)
		return
	case now >= n.retry:
		b.exchange(n, now)
		return
	}
	n.busy.Store(false)
}

// isIdle reports, at the second tick after the last take, that there was none.
func (n *leasedBucket) isIdle() bool {
	asks := n.totalRequested()
	if asks != n.seen {
		n.seen, n.idleTicks = asks, 0
		return false
	}
	n.idleTicks++
	return n.idleTicks >= 2
}

func (n *leasedBucket) isCold(period, now time.Duration) bool {
	cost := max(bucket.Tokens(n.cost.Load()), 1)
	takes := float64(n.totalRequested()-n.reported) / float64(cost)
	return takes*float64(period) < HotTakes/4*float64(now-n.asked)
}

// requestRetire makes n retire, now or when the loan in flight is settled.
func (b *Borrower) requestRetire(n *leasedBucket) {
	n.leaving.Store(true)
	if n.tryAcquire() {
		b.maintain(n, b.now())
	}
}

func (b *Borrower) retire(n *leasedBucket, now time.Duration) {
	n.retiring, n.retired = true, now
	n.until.Store(0)
	n.delayNext(now)
	if !n.entry { // and the purse is empty
		b.remove(n)
		return
	}
	b.exchange(n, now)
}
