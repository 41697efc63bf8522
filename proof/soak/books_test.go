// SPDX-License-Identifier: Apache-2.0

package soak_test

import (
	"cmp"
	"slices"
	"sync"
)

// A limit is a bucket's limit in the policy: a capacity and tokens per second, or tokens per window in
// microseconds.
type limit struct {
	rate, capacity    float64
	perWindow, window int64
}

// A grant is a token that a client was given: when it asked, and when it knew.
// The store decided in between.
type grant struct{ sent, done int64 }

// A book holds the grants of one bucket.
type book struct {
	limit  limit
	raise  float64 // what each raise of the limit adds
	grants []grant
}

// books are all of them, by the names of buckets. It is safe for concurrent use.
type books struct {
	mu   sync.Mutex
	book map[string]*book
}

func newBooks() *books { return &books{book: map[string]*book{}} }

// add notes a grant of a bucket whose limit, and the most that a raise adds to it,
// are always the same.
func (b *books) add(bucket string, l limit, raise float64, g grant) {
	b.mu.Lock()
	defer b.mu.Unlock()
	entry := b.book[bucket]
	if entry == nil {
		entry = &book{limit: l, raise: raise}
		b.book[bucket] = entry
	}
	entry.grants = append(entry.grants, g)
}

func (b *books) size() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.book)
}

func (b *books) grants() (n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, entry := range b.book {
		n += len(entry.grants)
	}
	return n
}

// check holds every bucket against its limit.
func (b *books) check(o *outages, raises []span, w *failures) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for name, entry := range b.book {
		if entry.limit.window > 0 {
			entry.checkWindows(name, o.list(), w)
			continue
		}
		if excess, at := entry.excess(o.list(), raises); excess > 1e-6 {
			w.add("bucket %s: %.6f tokens more than its limit allows were admitted until %d", name, excess, at)
		}
	}
}

// excess returns the largest excess of the grants in any interval over capacity + rate · t plus the
// allowances. It also returns the end of that interval. Without an excess, worst is 0 or less.
//
// Sorted by request time, the grants i to j were decided between the request i and the latest answer up to
// j. So for every such pair
//
//	j − i + 1 ≤ capacity + rate · (latest answer − request) + allowances
//
// One pass finds the worst pair if it keeps the largest term of any i. An allowance counts if its span
// overlaps the interval.
func (b *book) excess(losses, raises []span) (worst float64, at int64) {
	grants := slices.Clone(b.grants)
	slices.SortFunc(grants, func(x, y grant) int { return cmp.Or(cmp.Compare(x.sent, y.sent), cmp.Compare(x.done, y.done)) })
	worst = -b.limit.capacity
	if len(grants) == 0 {
		return worst, 0
	}
	origin := grants[0].sent // seconds since then are exact enough
	seconds := func(at int64) float64 { return float64(at-origin) / 1e6 }
	allowed := func(count func([]span, int64) int, at int64) float64 {
		return b.limit.capacity*float64(count(losses, at)) + b.raise*float64(count(raises, at))
	}
	best, latest := 0.0, int64(0)
	for j, g := range grants {
		start := b.limit.rate*seconds(g.sent) + allowed(over, g.sent) - float64(j)
		if j == 0 || start > best {
			best = start
		}
		latest = max(latest, g.done)
		used := float64(j+1) - b.limit.rate*seconds(latest) - allowed(begun, latest)
		if e := used + best - b.limit.capacity; e > worst {
			worst, at = e, latest
		}
	}
	return worst, at
}

// over is how many of the spans have ended before an instant.
func over(spans []span, at int64) (n int) {
	for _, s := range spans {
		if s.end < at {
			n++
		}
	}
	return n
}

// begun is how many of the spans have begun by an instant.
func begun(spans []span, at int64) (n int) {
	for _, s := range spans {
		if s.begin <= at {
			n++
		}
	}
	return n
}

// checkWindows counts the grants that were certainly decided within each window,
// which all begin at multiples of their length.
func (b *book) checkWindows(name string, losses []span, w *failures) {
	granted := map[int64]int64{}
	for _, g := range b.grants {
		if first := g.sent / b.limit.window; first == g.done/b.limit.window {
			granted[first]++
		}
	}
	for window, n := range granted {
		allowed := b.limit.perWindow
		for _, loss := range losses {
			if loss.overlaps(span{window * b.limit.window, (window+1)*b.limit.window - 1}) {
				allowed += b.limit.perWindow
			}
		}
		if n > allowed {
			w.add("bucket %s: %d tokens in the window that began at %d, want at most %d", name, n, window*b.limit.window, allowed)
		}
	}
}
