// SPDX-License-Identifier: Apache-2.0

package lease

import (
	"context"
	"fmt"
	"sync"
)

// closers is how many slices are given back at a time.
const closers = 16

// Close gives back all that is held and ends every goroutine. Takes answer false
// from then on. It returns when that is done, or soon after ctx is: what could not
// be given back by then is the error, and ends by itself, TTL + Grace after it was
// borrowed.
func (b *Borrower) Close(ctx context.Context) error {
	b.mu.Lock()
	if b.closed {
		b.mu.Unlock()
		return ErrClosed
	}
	b.closed = true
	lines := *b.lines.Load()
	b.lines.Store(&map[string]*line{})
	b.mu.Unlock()
	close(b.done)
	stop := context.AfterFunc(ctx, b.cancel)
	defer b.cancel()
	defer stop()
	b.flights.Wait()

	var (
		mu     sync.Mutex // guards failed and first
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
		return fmt.Errorf("lease: close: %d of %d slices were not given back: %w", failed, len(lines), first)
	}
	return nil
}

// giveBack ends a line when nothing else goes on any more.
func (b *Borrower) giveBack(n *line) error {
	now := b.now()
	if !n.entry {
		return nil
	}
	n.retiring = true
	n.until.Store(0)
	loan := b.makeUp(n, now)
	ctx, cancel := context.WithTimeout(b.ctx, b.config.TTL)
	defer cancel()
	g, err := b.config.Lender.Borrow(ctx, loan)
	if err != nil {
		b.count.failures.Add(1)
		b.count.lost.Add(int64(n.aside))
		b.count.aside.Add(-int64(n.aside))
		return err
	}
	b.accept(n, loan, g, now)
	return nil
}
