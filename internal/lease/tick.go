// SPDX-License-Identifier: Apache-2.0

package lease

import (
	"time"

	"github.com/metehq/mete/bucket"
)

// tickAlong ticks every period while anything is leased.
func (b *Borrower) tickAlong() {
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
		if len(*b.lines.Load()) == 0 {
			b.ticking = false
			b.mu.Unlock()
			return
		}
		b.mu.Unlock()
	}
}

// tick looks after every line that nobody else looks after.
func (b *Borrower) tick(now time.Duration) {
	for _, n := range *b.lines.Load() {
		if n.grab() {
			b.look(n, now)
		}
	}
}

// look does what is due for n, which the caller has grabbed. A slice of which
// nothing was spent between three ticks goes back. One that has lasted for two
// periods was too large; this is what renews those that last, too, long before
// their time is over.
func (b *Borrower) look(n *line, now time.Duration) {
	switch {
	case n.retiring && now >= n.retired+b.config.TTL+b.config.Grace:
		// The entry is over, or nearly. Its name is not used again.
		b.count.lost.Add(int64(n.aside))
		b.count.aside.Add(-int64(n.aside))
		b.remove(n)
		return
	case n.retiring && now >= n.retry:
		b.exchange(n, now)
		return
	case n.retiring:
	case n.leaving.Load():
		b.retire(n, now)
		return
	case n.idle():
		b.retire(n, now)
		return
	case now-n.asked < 2*b.config.Period:
	case n.cold(b.config.Period, now):
		b.retire(n, now)
		return
	case now >= n.retry:
		b.exchange(n, now)
		return
	}
	n.busy.Store(false)
}

// idle reports, at the second tick after the last take, that there was none.
func (n *line) idle() bool {
	asks := n.asks()
	if asks != n.seen {
		n.seen, n.quiet = asks, 0
		return false
	}
	n.quiet++
	return n.quiet >= 2
}

// cold reports whether n is no longer worth a loan now and then.
func (n *line) cold(period, now time.Duration) bool {
	cost := max(bucket.Tokens(n.cost.Load()), 1)
	takes := float64(n.asks()-n.told) / float64(cost)
	return takes*float64(period) < HotTakes/4*float64(now-n.asked)
}

// leave makes n retire, now or when the loan under way is settled.
func (b *Borrower) leave(n *line) {
	n.leaving.Store(true)
	if n.grab() {
		b.look(n, b.now())
	}
}

// retire gives everything back. The caller has grabbed n.
func (b *Borrower) retire(n *line, now time.Duration) {
	n.retiring, n.retired = true, now
	n.until.Store(0)
	n.hold(now)
	if !n.entry { // and nothing in the purse
		b.remove(n)
		return
	}
	b.exchange(n, now)
}
