// SPDX-License-Identifier: Apache-2.0

package leasetest

import (
	"context"
	"sync"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/lease"
)

// A Bank is a [lease.Lender] in memory. It is safe for concurrent use. Now is required.
type Bank struct {
	Now func() bucket.Instant

	mu    sync.Mutex // protects books
	books map[string]*Book
}

// Borrow implements [lease.Lender].
func (b *Bank) Borrow(_ context.Context, loan lease.Loan) (lease.Grant, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.book(loan.Key).Borrow(loan, b.Now())
}

// Take takes cost from key's bucket directly.
func (b *Bank) Take(key string, l *bucket.Limit, cost bucket.Tokens) bucket.Snapshot {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.book(key).Take(l, b.Now(), cost)
}

// Leased returns the leased tokens of key's bucket, settled to now.
func (b *Bank) Leased(key string, l *bucket.Limit) bucket.Tokens {
	b.mu.Lock()
	defer b.mu.Unlock()
	book := b.book(key)
	book.Settle(l, b.Now())
	return book.Leased()
}

func (b *Bank) book(key string) *Book {
	if b.books == nil {
		b.books = map[string]*Book{}
	}
	if b.books[key] == nil {
		b.books[key] = &Book{}
	}
	return b.books[key]
}
