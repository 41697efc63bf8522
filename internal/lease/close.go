// SPDX-License-Identifier: Apache-2.0

package lease

import (
	"context"
	"fmt"
	"sync"
)

const closers = 16

// Close returns all leased tokens and ends all goroutines. Later takes return false. Close returns when that is
// done, or soon after ctx ends. The error counts the leases that could not be returned; the store ends them TTL +
// Grace after their loan.
func (b *Borrower) Close(ctx context.Context) error {
	b.mu.Lock()
	if b.closed {
		b.mu.Unlock()
		return ErrClosed
	}
	b.closed = true
	lines := *b.leased.Load()
	b.leased.Store(&map[string]*leasedBucket{})
	b.mu.Unlock()
	close(b.done)
	stop := context.AfterFunc(ctx, b.cancel)
	defer b.cancel()
	defer stop()
	b.flights.Wait()

	var (
		mu     sync.Mutex // protects failed and first
		failed int
		first  error
		turns  = make(chan struct{}, closers)
		all    sync.WaitGroup
	)
	for _, n := range lines {
		turns <- struct{}{}
		all.Go(func() {
			defer func() { <-turns }()
			if err := b.giveBack(n); err != nil {
				mu.Lock()
				defer mu.Unlock()
				if failed++; first == nil {
					first = err
				}
			}
		})
	}
	all.Wait()
	if first != nil {
		return fmt.Errorf("lease: close: %d of %d leases could not be returned: %w", failed, len(lines), first)
	}
	return nil
}

// giveBack returns a lease during Close, when nothing else uses it.
func (b *Borrower) giveBack(n *leasedBucket) error {
	now := b.now()
	if !n.entry {
		return nil
	}
	n.retiring = true
	n.until.Store(0)
	loan := b.prepareLoan(n, now)
	ctx, cancel := context.WithTimeout(b.ctx, b.config.TTL)
	defer cancel()
	g, err := b.config.Lender.Borrow(ctx, loan)
	if err != nil {
		b.count.failures.Add(1)
		b.count.lost.Add(int64(n.setAside))
		b.count.setAside.Add(-int64(n.setAside))
		return err
	}
	b.accept(n, loan, g, now)
	return nil
}
