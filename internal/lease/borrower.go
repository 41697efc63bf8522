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

// A Borrower takes slices of hot buckets and spends them. It is made by [New] and
// safe for concurrent use. While anything is leased it has a goroutine, and one
// for each loan under way; [Borrower.Close] ends them.
type Borrower struct {
	config Config
	now    func() time.Duration
	lines  atomic.Pointer[map[string]*line] // replaced, never changed
	heat   heat
	count  tally

	carry func(*line, Loan) // takes a loan to the lender and the answer to settle
	wake  func()            // sees to it that tick is called every period

	ctx    context.Context // of all calls to the lender
	cancel context.CancelFunc
	done   chan struct{} // closed by Close

	mu      sync.Mutex // guards the fields below, and changes of lines
	closed  bool
	ticking bool
	opened  uint64         // lines so far
	flights sync.WaitGroup // loans under way, and the ticker
}

// New returns a Borrower that has leased nothing. The error names everything that
// is wrong with c.
func New(c Config) (*Borrower, error) {
	c = c.withDefaults()
	if err := c.check(); err != nil {
		return nil, err
	}
	b := &Borrower{config: c, now: c.Now, done: make(chan struct{})}
	b.ctx, b.cancel = context.WithCancel(context.Background())
	b.lines.Store(&map[string]*line{})
	b.heat.seed = maphash.MakeSeed()
	b.carry = func(n *line, loan Loan) { go b.borrow(n, loan) }
	b.wake = func() { go b.tickAlong() }
	return b, nil
}

// Take spends cost of what is held of key's bucket. False is not a denial: then
// the store has to be asked. A take that is answered here takes no lock and
// allocates nothing.
//
// l is the limit as it holds for key. Buckets become leased by being asked for;
// costs of 0 and buckets of limits that are not lent never are. See [Lot] for how
// to put back what was taken.
//
// The snapshot shows the bucket as the store knew it at the last loan, refilled
// since, and the rest of the slice: what others spent since is missing in it.
func (b *Borrower) Take(key string, l *bucket.Limit, cost bucket.Tokens) (snap bucket.Snapshot, lot Lot, ok bool) {
	n := (*b.lines.Load())[key]
	if n == nil {
		b.notice(key, l, cost)
		return snap, lot, false
	}
	if cost <= 0 || *l != n.limit {
		b.refuse(n, cost)
		return snap, lot, false
	}
	now := b.now()
	if int64(now) < n.until.Load() {
		if rest, count, ok := n.purse.spend(cost); ok {
			if int64(rest) < n.low.Load() {
				b.prefetch(n, now, cost)
			}
			n.show(&snap, now, cost, rest)
			return snap, Lot{n, cost, count}, true
		}
	}
	if cost <= n.share { // no slice will ever hold more
		n.missed.Add(int64(cost))
		b.prefetch(n, now, cost)
	}
	return snap, lot, false
}

// A Lot is what a [Borrower.Take] has taken. Of the zero Lot there is nothing to
// put back.
type Lot struct {
	line  *line
	cost  bucket.Tokens
	count uint64
}

// Untake puts the lot back where it came from, as if it had not been taken, and
// reports whether that was still possible. Where it was not, the store has been
// told that it was spent, and the caller may refund it there. It is called once
// at most.
func (l Lot) Untake() bool { return l.line != nil && l.line.purse.unspend(l.cost, l.count) }

// Forget begins to give back what is held of key's bucket, and does not wait for
// it. A reset need not: see [Lender].
func (b *Borrower) Forget(key string) {
	if n := (*b.lines.Load())[key]; n != nil {
		b.leave(n)
	}
}

// ForgetMatching begins to give back the tokens of all buckets whose keys match.
func (b *Borrower) ForgetMatching(match func(key string) bool) {
	for key, n := range *b.lines.Load() {
		if match(key) {
			b.leave(n)
		}
	}
}

// refuse is for takes that a line is not for. Under another limit it is no use:
// it goes, and may come again.
func (b *Borrower) refuse(n *line, cost bucket.Tokens) {
	if cost > 0 {
		b.leave(n)
	}
}

// notice counts a take of a bucket that is not leased, and begins to lease it if
// it is hot and can be.
func (b *Borrower) notice(key string, l *bucket.Limit, cost bucket.Tokens) {
	if cost <= 0 || !Leasable(l) || cost > b.config.share(l)/HotTakes {
		return
	}
	if now := b.now(); b.heat.hot(key, now, b.config.Period) {
		b.open(key, l, cost, now)
	}
}

// open begins a line, and asks for its first slice.
func (b *Borrower) open(key string, l *bucket.Limit, cost bucket.Tokens, now time.Duration) {
	b.mu.Lock()
	lines := *b.lines.Load()
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
	n := &line{
		key:    strings.Clone(key), // which may be part of something large
		holder: b.config.Node + "." + strconv.FormatUint(b.opened, 36),
		limit:  *l,
		share:  b.config.share(l),
	}
	n.size, n.asked = HotTakes*cost, now-b.config.Period
	n.cost.Store(int64(cost))
	n.missed.Store(int64(HotTakes * cost)) // at least
	n.busy.Store(true)
	lines = maps.Clone(lines)
	lines[n.key] = n
	b.lines.Store(&lines)
	if !b.ticking {
		b.ticking = true
		b.flights.Add(1)
		b.wake()
	}
	b.mu.Unlock()
	b.exchange(n, now)
}

// remove ends a line that has nothing any more.
func (b *Borrower) remove(n *line) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if lines := *b.lines.Load(); lines[n.key] == n {
		lines = maps.Clone(lines)
		delete(lines, n.key)
		b.lines.Store(&lines)
	}
}
