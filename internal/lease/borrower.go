// SPDX-License-Identifier: Apache-2.0

package lease

import (
	"context"
	"hash/maphash"
	"maps"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/metehq/mete/bucket"
)

// A Borrower leases parts of hot buckets and spends them. [New] creates it. It is safe for concurrent use. It has
// one goroutine while buckets are leased, and one per loan in flight. [Borrower.Close] ends them.
type Borrower struct {
	config Config
	now    func() time.Duration
	leased atomic.Pointer[map[string]*leasedBucket] // copy on write
	heat   heat
	count  tally

	sendLoan    func(*leasedBucket, Loan) // sends a loan, and its answer to settle
	startTicker func()                    // starts the ticker

	ctx    context.Context // of all calls to the lender
	cancel context.CancelFunc
	done   chan struct{} // closed by Close

	mu      sync.Mutex // protects the fields below, and writes of leased
	closed  bool
	ticking bool
	opened  uint64         // number of leased buckets so far
	flights sync.WaitGroup // loans in flight, and the ticker
}

// New returns a Borrower without leases. The error joins all errors of c.
func New(c Config) (*Borrower, error) {
	c = c.withDefaults()
	if err := c.check(); err != nil {
		return nil, err
	}
	b := &Borrower{config: c, now: c.Now, done: make(chan struct{})}
	b.ctx, b.cancel = context.WithCancel(context.Background())
	b.leased.Store(&map[string]*leasedBucket{})
	b.heat.seed = maphash.MakeSeed()
	b.sendLoan = func(n *leasedBucket, loan Loan) { go b.borrow(n, loan) }
	b.startTicker = func() { go b.runTicker() }
	return b, nil
}

// Take spends cost from the leased tokens of key's bucket. The result false is not a denial: the caller must then
// take from the store. A take from leased tokens uses no lock and allocates nothing.
//
// The limit l is the current limit of key. Take also counts takes to find hot buckets, and leases them. It never
// leases for a cost of 0, or for limits that are not leasable. A [Lot] can be returned.
//
// The snapshot shows the bucket as of the last loan, refilled since, plus the remaining leased tokens. It does
// not include later takes of other nodes.
func (b *Borrower) Take(key string, l *bucket.Limit, cost bucket.Tokens) (snap bucket.Snapshot, lot Lot, ok bool) {
	n := (*b.leased.Load())[key]
	if n == nil {
		b.countTake(key, l, cost)
		return snap, lot, false
	}
	if cost <= 0 || *l != n.limit {
		b.rejectTake(n, cost)
		return snap, lot, false
	}
	now := b.now()
	if int64(now) < n.until.Load() {
		if rest, count, ok := n.purse.spend(cost); ok {
			if int64(rest) < n.low.Load() {
				b.prefetch(n, now, cost)
			}
			n.fillSnapshot(&snap, now, cost, rest)
			return snap, Lot{n, cost, count}, true
		}
	}
	if cost <= n.share { // no lease will ever hold more
		n.missed.Add(int64(cost))
		b.prefetch(n, now, cost)
	}
	return snap, lot, false
}

// A Lot holds the tokens of one [Borrower.Take]. The zero Lot is empty.
type Lot struct {
	bucket *leasedBucket
	cost   bucket.Tokens
	count  uint64
}

// Untake returns the lot to its lease, and reports whether that was possible. It is impossible after the node has
// reported the tokens to the store as spent; the caller can then refund them there. Call Untake once at most.
func (l Lot) Untake() bool { return l.bucket != nil && l.bucket.purse.unspend(l.cost, l.count) }

// Drop starts to return the leased tokens of key's bucket, and does not wait. A reset does not need it: see
// [Lender].
func (b *Borrower) Drop(key string) {
	if n := (*b.leased.Load())[key]; n != nil {
		b.requestRetire(n)
	}
}

// DropMatching starts to return the leased tokens of all buckets with matching keys.
func (b *Borrower) DropMatching(match func(key string) bool) {
	for key, n := range *b.leased.Load() {
		if match(key) {
			b.requestRetire(n)
		}
	}
}

// rejectTake handles a take that a lease does not fit. If the limit differs, the lease is returned, and the
// bucket can be leased again.
func (b *Borrower) rejectTake(n *leasedBucket, cost bucket.Tokens) {
	if cost > 0 {
		b.requestRetire(n)
	}
}

// countTake counts a take from a bucket that is not leased, and leases the bucket if it is hot.
func (b *Borrower) countTake(key string, l *bucket.Limit, cost bucket.Tokens) {
	if cost <= 0 || !Leasable(l) || cost > b.config.share(l)/HotTakes {
		return
	}
	if now := b.now(); b.heat.countTake(key, now, b.config.Period) {
		b.open(key, l, cost, now)
	}
}

func (b *Borrower) open(key string, l *bucket.Limit, cost bucket.Tokens, now time.Duration) {
	b.mu.Lock()
	lines := *b.leased.Load()
	if b.closed || lines[key] != nil {
		b.mu.Unlock()
		return
	}
	if len(lines) >= b.config.MaxKeys {
		b.mu.Unlock()
		b.count.refused.Add(1)
		return
	}
	b.opened++
	n := &leasedBucket{
		key:    strings.Clone(key), // the key may be part of a larger string
		holder: b.config.Node + "." + strconv.FormatUint(b.opened, 36),
		limit:  *l,
		share:  b.config.share(l),
	}
	n.size, n.asked = HotTakes*cost, now-b.config.Period
	n.cost.Store(int64(cost))
	n.missed.Store(int64(HotTakes * cost)) // a lower bound
	n.busy.Store(true)
	lines = maps.Clone(lines)
	lines[n.key] = n
	b.leased.Store(&lines)
	if !b.ticking {
		b.ticking = true
		b.flights.Add(1)
		b.startTicker()
	}
	b.mu.Unlock()
	b.exchange(n, now)
}

func (b *Borrower) remove(n *leasedBucket) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if lines := *b.leased.Load(); lines[n.key] == n {
		lines = maps.Clone(lines)
		delete(lines, n.key)
		b.leased.Store(&lines)
	}
}
