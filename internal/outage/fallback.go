// SPDX-License-Identifier: Apache-2.0

// Package outage decides with local buckets while a store does not answer, and charges their costs to the store
// afterwards.
package outage

import (
	"context"
	"crypto/rand"
	"hash/maphash"
	"slices"
	"sync/atomic"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/seen"
	"github.com/metehq/mete/store"
)

// maxNodes bounds the number of shares of a limit.
const maxNodes = 1 << 16

// A Fallback decides for rules with on_store_error: local while the store does not answer. Each bucket of the local
// store has one node's share of the limit, and starts with that share of the last known deficit. A ledger records
// the local costs. They are charged to the store when it answers again, so recovery grants no second burst.
//
// # Bound
//
// Let N nodes lose the store at the same time, where nodes returns N. A bucket of the store then refills without charges,
// and N local buckets replace it, with shares that add up to it. If each starts with an N'th part of its deficit, their
// total deficit is at least the deficit of one bucket after the same costs. The method [bucket.Limit.Share] computes
// the shares. A full bucket loses refill and never gains any. Recovery charges the difference between the local
// bucket and the same bucket without its local costs. The store's own refill equals the total refill of the local
// buckets without these costs. The store's deficit is therefore again at least the deficit of one bucket. Only the
// following amounts can exceed the limit.
//
//   - Costs of other nodes since a node last saw the bucket: its local bucket has too many tokens, by an N'th of them. In one
//     outage this is less than one capacity over all nodes, and zero with a single node.
//   - Uncharged local costs of other nodes when the store is back: less than one capacity over all nodes. They last
//     until the nodes take from the same key or call [Fallback.RecoverAll].
//   - A token, or the largest admitted cost, if a node's share is smaller.
//   - The tokens of one interval, if intervals start at different times here and in the store: with anchor: first,
//     or with different clocks.
//   - A request that timed out, and that its local bucket denied. If the store executes it later, a repetition with its
//     ID is admitted, although its tokens may have been spent locally.
//   - Rounding: less than a thousandth of a token per node and outage.
//   - The node's share of the refill during its outage, if other nodes still reach the store, which grants that
//     refill too. [Stats.Refilled] counts it.
//   - Costs that exceed the debt limit when they are charged (max_reserved, sliding limits), and costs without an
//     account. [Stats.Excess] counts them.
//
// A local bucket starts without the costs of the node's own takes in flight, and gets them back if they fail. The store may
// charge such takes later. Together they then add at most the refill in between.
//
// After an error with [store.MaybeSpent], the charges can exceed the local costs. The store may have charged the
// failed take, and the local bucket decides it too.
//
// # Versions of a limit
//
// A row has an account for each version of the limit, in the store and locally. Each version admits at most its
// own bound, also during outages.
//
//   - The memory (package seen) holds the accounts of all versions that this process has used. A version that
//     returns during an outage starts with its own account: see openVersion.
//   - Recovery charges the largest amount that any version is due. The store charges it to all accounts, so other
//     accounts may lose too much, down to empty.
//   - The rest of an account's due is charged under its own version: see chargeNeed.
//
// The memory does not contain the cost of a take with a lost answer. Such a cost can exceed the bound of a sliding
// window or log. If recovery charges another version, the account may then become empty without notice.
type Fallback struct {
	local    store.Store
	remote   store.Store
	nodes    func() int
	seen     *seen.Memory // remembers the remote store; provides the fallback's clock
	now      func() bucket.Instant
	counts   counts
	inFlight *inFlight
	ledger   ledger

	name      string // of this process, part of the IDs of its charges
	ids       atomic.Uint64
	lastSweep atomic.Int64 // an instant
}

// New returns a fallback that decides with buckets in local while remote does not answer. nodes returns the
// number of processes that share remote; nil means one. The caller records the answers of remote in memory, and
// the fallback the answers to its own charges.
func New(local, remote store.Store, nodes func() int, memory *seen.Memory) *Fallback {
	if nodes == nil {
		nodes = func() int { return 1 }
	}
	return &Fallback{
		local: local, remote: remote, nodes: nodes, seen: memory, now: memory.Now,
		inFlight: newInFlight(), ledger: ledger{seed: maphash.MakeSeed()}, name: "recovery " + rand.Text() + " ",
	}
}

type counts struct{ spent, charged, refilled, excess atomic.Int64 }

// Stats holds the counters of a fallback: see [mete.Stats].
type Stats struct {
	SpentLocally, Charged, Refilled, Excess bucket.Tokens
	Unsettled                               int // keys
}

func (f *Fallback) Stats() Stats {
	return Stats{
		SpentLocally: bucket.Tokens(f.counts.spent.Load()), Charged: bucket.Tokens(f.counts.charged.Load()),
		Refilled: bucket.Tokens(f.counts.refilled.Load()), Excess: bucket.Tokens(f.counts.excess.Load()),
		Unsettled: int(f.ledger.size.Load()),
	}
}

// Take takes from local buckets after the store has not answered the take of t. It appends the accounts of the
// charges to accounts, with nil for a charge without one.
func (f *Fallback) Take(ctx context.Context, dst []bucket.Snapshot, charges []store.Charge, mode store.Mode, accounts []*Account, t *Trip) ([]bucket.Snapshot, []*Account, bool, error) {
	mode.Within = 0
	first := len(accounts)
	for i := range charges {
		if isSlot(&charges[i]) { // no costs to charge afterwards
			accounts = append(accounts, nil)
			continue
		}
		accounts = append(accounts, f.ledger.open(charges[i].Key))
	}
	mine := accounts[first:]
	defer unlock(mine)
	var few [4]store.Charge
	local := few[:0]
	for i, a := range mine {
		c := &charges[i]
		if a != nil {
			if err := f.openLocal(ctx, a, c, t); err != nil {
				return dst, accounts, false, err
			}
		}
		local = append(local, store.Charge{Key: c.Key, Limit: f.localLimit(a, c, mode), Cost: c.Cost, Slot: c.Slot, Await: c.Await})
		if a != nil && !mode.DryRun {
			if err := f.openVersion(ctx, a, c, &local[i].Limit); err != nil {
				return dst, accounts, false, err
			}
		}
	}
	dst, allowed, err := f.spend(ctx, dst, local, mode, mine)
	return dst, accounts, allowed, err
}

func unlock(accounts []*Account) {
	for _, a := range accounts {
		if a != nil {
			a.mu.Unlock()
		}
	}
}

// spend takes from the local buckets and records the costs. For a take with an ID, the change of the buckets
// shows whether it was charged now or before.
func (f *Fallback) spend(ctx context.Context, dst []bucket.Snapshot, local []store.Charge, mode store.Mode, accounts []*Account) ([]bucket.Snapshot, bool, error) {
	named := mode.ID != "" && !mode.DryRun
	var before, after []bucket.Snapshot
	var err error
	if named {
		if before, err = f.peekLocal(ctx, local); err != nil {
			return dst, false, err
		}
	}
	at := len(dst)
	dst, allowed, err := f.local.Take(ctx, dst, local, mode)
	if err != nil || !allowed || mode.DryRun {
		return dst, allowed, err
	}
	if named {
		if after, err = f.peekLocal(ctx, local); err != nil {
			return dst, false, err
		}
	}
	for i, a := range accounts {
		if isSlot(&local[i]) {
			continue
		}
		spent := dst[at+i].Cost
		if named {
			spent = max(after[i].Missing()-before[i].Missing(), 0)
		}
		f.counts.spent.Add(int64(spent))
		if a == nil {
			f.counts.excess.Add(int64(spent))
			continue
		}
		a.base = moveToFront(a.base, &local[i].Limit)
		if a.attempt != nil {
			a.attempt.through = moveToFront(a.attempt.through, &local[i].Limit)
		}
		a.spent += spent
		a.share, a.least = local[i].Limit, max(a.least, minCost(&local[i], mode))
	}
	return dst, true, nil
}

func (f *Fallback) peekLocal(ctx context.Context, charges []store.Charge) ([]bucket.Snapshot, error) {
	free := make([]store.Charge, len(charges))
	for i, c := range charges {
		c.Cost = 0
		free[i] = c
	}
	snaps, _, err := f.local.Take(ctx, nil, free, store.Mode{DryRun: true})
	return snaps, err
}

// localLimit returns the limit of c's local bucket. An account keeps its initial number of nodes, so that
// recorded costs keep their meaning.
func (f *Fallback) localLimit(a *Account, c *store.Charge, mode store.Mode) bucket.Limit {
	if a == nil {
		return c.Limit.Share(f.nodeCount(), minCost(c, mode))
	}
	return c.Limit.Share(a.nodes, max(a.least, minCost(c, mode)))
}

// minCost returns the smallest capacity of a share that can admit c at all.
func minCost(c *store.Charge, mode store.Mode) bucket.Tokens {
	if mode.UpTo || mode.MaxWait == bucket.Forced {
		return bucket.Token // a part is enough, or the take is admitted anyway
	}
	return max(c.Cost, bucket.Token)
}

func (f *Fallback) nodeCount() int { return min(max(f.nodes(), 1), maxNodes) }

// openLocal prepares the local bucket for c. A new bucket starts with its share of the store bucket's last known
// deficit, minus the refill since. It also lacks the cost of other takes in flight. An existing account returns the
// cost that it withholds for this take.
func (f *Fallback) openLocal(ctx context.Context, a *Account, c *store.Charge, t *Trip) error {
	if a.hasBucket() {
		return f.release(ctx, a, c.Cost, t)
	}
	now := f.now()
	a.nodes = f.nodeCount()
	a.share = c.Limit.Share(a.nodes, bucket.Token)
	local := []store.Charge{{Key: c.Key, Limit: a.share}}
	snaps, err := f.peekLocal(ctx, local)
	if err != nil {
		return err
	}
	room := max(a.share.Capacity()+a.share.MaxReserved()-snaps[0].Missing(), 0)
	// The takes in flight come before the memory. An answer in between then counts twice, rather than never.
	flying, number := f.inFlight.otherCosts(c.Key, t)
	a.known = f.seen.Recall(c.Key)
	missed := min(a.nodeShare(missingTokens(a.known, &c.Limit, now)), room)
	local[0].Cost = min(missed+flying, room)
	charged := false
	if local[0].Cost > 0 {
		if snaps, charged, err = f.local.Take(ctx, nil, local, store.Mode{MaxWait: bucket.Forced}); err != nil {
			return err
		}
	}
	if a.withheld, a.unheld, a.number = 0, 0, number; charged {
		a.withheld = local[0].Cost - missed
		a.unheld = flying - a.withheld
	}
	a.base = bucket.Row{{Limit: a.share, State: baseOf(&snaps[0], charged, now)}}
	a.setVersion(&a.share, c)
	return nil
}

// openVersion opens accounts of c's version, with the share l, in the base and the attempt of a. A take under l
// opens one in the local row, so all three refill alike. Each account lacks at least its share of the last
// known deficit of the store's account of this version.
func (f *Fallback) openVersion(ctx context.Context, a *Account, c *store.Charge, l *bucket.Limit) error {
	if find(a.base, l) < 0 {
		now := f.now()
		known := a.nodeShare(missingOf(a.known, &c.Limit, now))
		if !slices.ContainsFunc(a.versions, func(v version) bool { return v.whole.Limit == c.Limit }) {
			// Takes in flight may be of this version, which has another room for their costs. Their decisions release nothing.
			known += a.withheld + a.unheld
			a.number = 0
		}
		known = min(known, l.Capacity()+l.MaxReserved())
		local := []store.Charge{{Key: c.Key, Limit: *l}}
		snaps, err := f.peekLocal(ctx, local)
		if err != nil {
			return err
		}
		// The other local accounts are charged the same amount, which may be too much but never too little.
		if local[0].Cost = known - snaps[0].Missing(); local[0].Cost > 0 {
			if _, _, err := f.local.Take(ctx, nil, local, store.Mode{MaxWait: bucket.Forced}); err != nil {
				return err
			}
		}
		a.base = withAccount(a.base, l, now, known)
		if a.attempt != nil {
			a.attempt.through = withAccount(a.attempt.through, l, now, known)
		}
	}
	a.setVersion(l, c)
	return nil
}

// withAccount returns the row with an account of l, even if the row is full. A new account lacks at least known.
func withAccount(row bucket.Row, l *bucket.Limit, now bucket.Instant, known bucket.Tokens) bucket.Row {
	if find(row, l) >= 0 {
		return row
	}
	s, _ := row.StateFor(l, now)
	if more := known - l.Peek(s, now, 0, 0).Missing(); more > 0 {
		s, _ = l.Reserve(s, now, more, bucket.Forced)
	}
	return moveToFront(append(bucket.Row{{Limit: *l, State: s}}, row...), l)
}

// moveToFront returns the row with the account of l first, as in the local row after a take. It drops accounts
// above [bucket.MaxAccounts].
func moveToFront(row bucket.Row, l *bucket.Limit) bucket.Row {
	if i := find(row, l); i > 0 {
		row = append(bucket.Row{row[i]}, slices.Delete(slices.Clone(row), i, i+1)...)
	}
	return row[:min(len(row), bucket.MaxAccounts)]
}

func find(row bucket.Row, l *bucket.Limit) int {
	return slices.IndexFunc(row, func(x bucket.Account) bool { return x.Limit == *l })
}

func missingOf(row bucket.Row, l *bucket.Limit, now bucket.Instant) bucket.Tokens {
	if i := find(row, l); i >= 0 {
		return l.Peek(row[i].State, now, 0, 0).Missing()
	}
	return 0
}

func missingTokens(row bucket.Row, l *bucket.Limit, now bucket.Instant) bucket.Tokens {
	s, _ := row.StateFor(l, now)
	return l.Peek(s, now, 0, 0).Missing()
}

// baseOf returns the base of an account that starts with the local bucket in snap. If charged is true, the
// bucket has just been charged snap.Cost.
//
// A local bucket can contain older costs, from takes without an account or after a failed reset. The state of a
// sliding log would date them at the newest cost, and hide later costs after they have left the window. The
// base of a log therefore excludes them. While the log contains some of them, it contains all later costs too,
// and [Account.due] is the cost since the base.
func baseOf(snap *bucket.Snapshot, charged bool, now bucket.Instant) bucket.State {
	if snap.Limit.Algorithm() != bucket.AlgorithmSlidingLog {
		return snap.State(now)
	}
	var base bucket.State
	if charged {
		base, _ = snap.Limit.Reserve(base, now, snap.Cost, bucket.Forced)
	}
	return base
}
