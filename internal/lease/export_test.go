// SPDX-License-Identifier: Apache-2.0

package lease

import "time"

// Drive replaces the goroutines of b for a test with its own schedule. The function send gets every loan, and
// later calls answer with the result, or never. The test calls Tick every period.
func (b *Borrower) Drive(send func(loan Loan, answer func(Grant, error))) {
	b.startTicker = b.flights.Done
	b.sendLoan = func(n *leasedBucket, loan Loan) {
		send(loan, func(g Grant, err error) { b.settle(n, loan, g, err) })
	}
}

// Tick maintains the leases.
func (b *Borrower) Tick(now time.Duration) { b.tick(now) }

// Held returns the tokens that b can spend now.
func (b *Borrower) Held(key string, now time.Duration) int64 {
	n := (*b.leased.Load())[key]
	if n == nil || int64(now) >= n.until.Load() {
		return 0
	}
	return int64(n.purse.heldTokens())
}

// ShareOf returns the most tokens of a bucket that b leases.
func (b *Borrower) ShareOf(key string) int64 {
	if n := (*b.leased.Load())[key]; n != nil {
		return int64(n.share)
	}
	return 0
}
