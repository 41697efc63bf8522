// SPDX-License-Identifier: Apache-2.0

package lease

import "time"

// Drive takes the goroutines away from b, for a test that has a schedule of its
// own: send is given every loan and calls answer with what comes of it, or never.
// The test calls Tick every period.
func (b *Borrower) Drive(send func(loan Loan, answer func(Grant, error))) {
	b.startTicker = b.flights.Done
	b.sendLoan = func(n *leasedBucket, loan Loan) {
		send(loan, func(g Grant, err error) { b.settle(n, loan, g, err) })
	}
}

// Tick looks after what is leased.
func (b *Borrower) Tick(now time.Duration) { b.tick(now) }

// Held is what may be spent at now, by all that b knows.
func (b *Borrower) Held(key string, now time.Duration) int64 {
	n := (*b.leased.Load())[key]
	if n == nil || int64(now) >= n.until.Load() {
		return 0
	}
	return int64(n.purse.held())
}

// ShareOf is the most that b holds of a bucket.
func (b *Borrower) ShareOf(key string) int64 {
	if n := (*b.leased.Load())[key]; n != nil {
		return int64(n.share)
	}
	return 0
}
