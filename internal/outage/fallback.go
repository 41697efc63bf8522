// SPDX-License-Identifier: Apache-2.0

// Package outage decides by buckets of this process while a store does not answer, and
// charges to the store what was spent meanwhile.
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

// maxNodes bounds how far a limit is divided.
const maxNodes = 1 << 16

// A Fallback decides where the store does not answer, for rules that say local. It
// takes from a local store, each bucket of which has the limit's share of one node
// and begins with the share of what was last known to be missing. A ledger keeps
// in mind what was taken, so that it is charged to the store when that answers
// again: there is no second full burst.
//
// # The bound
//
// Let N nodes, as many as nodes says, lose the store at once. A bucket of
// the store then refills and is charged by nobody, and N local ones stand in its
// place, whose shares add up to it. If each of them begins with an N'th of what is
// missing there, together they miss at least what one bucket would miss after the
// same costs (see [bucket.Limit.Share]; a bucket that is full loses refill, and
// never gains). What is charged on recovery is the difference between the local
// bucket and itself without the local costs. So what the store's bucket misses
// then, its own refill being the sum of what the local ones would have had without
// these costs, is again at least that. Beyond the limit go only:
//
//   - What others took, or charged, since a node last saw the bucket: its own
//     begins with an N'th of that too much. It is less than a capacity of all nodes
//     together in one outage, and nothing where one node is all there is.
//   - What other nodes have spent and not charged yet, when the store is back: less
//     than a capacity of all together, until they take from the same key or
//     [Fallback.RecoverAll].
//   - Nothing for takes of its own that a node has in flight when it loses the store: its
//     local bucket begins without their cost, and has it back where they fail.
//   - A token, or the largest cost that was admitted, where a node's share is less.
//   - An interval's tokens, where intervals begin at other times here than in the
//     store: with anchor: first, or if the clocks differ.
//   - Rounding: below a thousandth of a token for each node and outage.
//   - Where other nodes still reach the store, the node's share of the refill, for
//     as long as it does not: the store gives that out, too. [Stats.Refilled]
//     counts it.
//   - What the bucket may not owe when it is charged (max_reserved, sliding limits),
//     and what there was no account for. [Stats.Excess] counts it.
//
// The charges exceed the local costs after an error with [store.MaybeSpent]: the store may have
// charged the failed take, and the local bucket decides it all the same.
//
// # Versions of a limit
//
// A row of the store has an account for each version of the limit, and so has the local row.
// Each version admits its own bound at most, in outages, too.
//
//   - The memory (package seen) has the accounts of all versions that this process has had. A version that
//     returns in an outage begins with its own one: see follow.
//   - The recovery charges the most that is due of any version. The store charges it to all
//     accounts, so the others may miss too much, at most until they are empty.
//   - The rest of an account's due follows under its own version: see raise.
//
// The cost of a take whose answer is lost can go beyond the bound of a sliding window or log.
// Such a cost is not in the memory. Where the recovery charges another version, the account
// may be empty without notice.
type Fallback struct {
	local  store.Store
	remote store.Store
	nodes  func() int
	seen   *seen.Memory // of the remote store; its clock is that of the fallback
	now    func() bucket.Instant
	counts counts
	flying *inFlight
	ledger ledger

	name      string // of this process, in the IDs of what it charges
	ids       atomic.Uint64
	lastSweep atomic.Int64 // an instant
}

// New returns a fallback that decides by buckets in local while remote does not answer.
// nodes returns the number of processes that share remote; nil is one. The caller notes the
// answers of remote in memory, and the fallback those to its own charges.
func New(local, remote store.Store, nodes func() int, memory *seen.Memory) *Fallback {
	if nodes == nil {
		nodes = func() int { return 1 }
	}
	return &Fallback{
		local: local, remote: remote, nodes: nodes, seen: memory, now: memory.Now,
		flying: newInFlight(), ledger: ledger{seed: maphash.MakeSeed()}, name: "recovery " + rand.Text() + " ",
	}
}

// counts are the numbers of [Stats] as they grow, in thousandths of a token.
type counts struct{ spent, charged, refilled, excess atomic.Int64 }

// Stats are numbers since a fallback was made: see [mete.Stats].
type Stats struct {
	SpentLocally, Charged, Refilled, Excess bucket.Tokens
	Unsettled                               int // keys
}

// Stats returns the numbers as they are.
func (f *Fallback) Stats() Stats {
	return Stats{
		SpentLocally: bucket.Tokens(f.counts.spent.Load()), Charged: bucket.Tokens(f.counts.charged.Load()),
		Refilled: bucket.Tokens(f.counts.refilled.Load()), Excess: bucket.Tokens(f.counts.excess.Load()),
		Unsettled: int(f.ledger.size.Load()),
	}
}

// Take takes from local buckets what the store should have been asked for. It
// appends the accounts of the charges to accounts: nil where there is none. The trip is
// that of the take which the store has not answered.
func (f *Fallback) Take(ctx context.Context, dst []bucket.Snapshot, charges []store.Charge, mode store.Mode, accounts []*Account, t *Trip) ([]bucket.Snapshot, []*Account, bool, error) {
	mode.Within = 0
	first := len(accounts)
	for i := range charges {
		accounts = append(accounts, f.ledger.open(charges[i].Key))
	}
	mine := accounts[first:]
	defer unlock(mine)
	var few [4]store.Charge
	local := few[:0]
	for i, a := range mine {
		c := &charges[i]
		if a != nil {
			if err := f.begin(ctx, a, c, t); err != nil {
				return dst, accounts, false, err
			}
		}
		local = append(local, store.Charge{Key: c.Key, Limit: f.share(a, c, mode), Cost: c.Cost})
		if a != nil && !mode.DryRun {
			if err := f.follow(ctx, a, c, &local[i].Limit); err != nil {
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

// spend takes from the local buckets and notes what was spent. Whether a take with
// an ID was charged now or before is seen from what the buckets miss.
func (f *Fallback) spend(ctx context.Context, dst []bucket.Snapshot, local []store.Charge, mode store.Mode, accounts []*Account) ([]bucket.Snapshot, bool, error) {
	named := mode.ID != "" && !mode.DryRun
	var before, after []bucket.Snapshot
	var err error
	if named {
		if before, err = f.look(ctx, local); err != nil {
			return dst, false, err
		}
	}
	at := len(dst)
	dst, allowed, err := f.local.Take(ctx, dst, local, mode)
	if err != nil || !allowed || mode.DryRun {
		return dst, allowed, err
	}
	if named {
		if after, err = f.look(ctx, local); err != nil {
			return dst, false, err
		}
	}
	for i, a := range accounts {
		spent := dst[at+i].Cost
		if named {
			spent = max(after[i].Missing()-before[i].Missing(), 0)
		}
		f.counts.spent.Add(int64(spent))
		if a == nil {
			f.counts.excess.Add(int64(spent))
			continue
		}
		a.base = front(a.base, &local[i].Limit)
		if a.attempt != nil {
			a.attempt.through = front(a.attempt.through, &local[i].Limit)
		}
		a.spent += spent
		a.share, a.least = local[i].Limit, max(a.least, least(&local[i], mode))
	}
	return dst, true, nil
}

// look shows local buckets.
func (f *Fallback) look(ctx context.Context, charges []store.Charge) ([]bucket.Snapshot, error) {
	free := make([]store.Charge, len(charges))
	for i, c := range charges {
		c.Cost = 0
		free[i] = c
	}
	snaps, _, err := f.local.Take(ctx, nil, free, store.Mode{DryRun: true})
	return snaps, err
}

// share is the limit of c's local bucket. An account keeps the number of nodes it
// was opened with, so that what was spent under it does not change.
func (f *Fallback) share(a *Account, c *store.Charge, mode store.Mode) bucket.Limit {
	if a == nil {
		return c.Limit.Share(f.count(), least(c, mode))
	}
	return c.Limit.Share(a.nodes, max(a.least, least(c, mode)))
}

// least is what a share must hold so that c can be admitted at all.
func least(c *store.Charge, mode store.Mode) bucket.Tokens {
	if mode.UpTo || mode.MaxWait == bucket.Forced {
		return bucket.Token // a part will do, or it is admitted anyway
	}
	return max(c.Cost, bucket.Token)
}

// count is how many nodes there are.
func (f *Fallback) count() int { return min(max(f.nodes(), 1), maxNodes) }

// begin makes the local bucket of a new account miss its share of what the
// store's bucket was last known to miss, and has refilled since, and what other takes in
// flight cost. An account that has begun gives back what it holds for this take.
func (f *Fallback) begin(ctx context.Context, a *Account, c *store.Charge, t *Trip) error {
	if a.begun() {
		return f.release(ctx, a, c.Cost, t)
	}
	now := f.now()
	a.nodes = f.count()
	a.share = c.Limit.Share(a.nodes, bucket.Token)
	local := []store.Charge{{Key: c.Key, Limit: a.share}}
	snaps, err := f.look(ctx, local)
	if err != nil {
		return err
	}
	room := max(a.share.Capacity()+a.share.MaxReserved()-snaps[0].Missing(), 0)
	a.known = f.seen.Recall(c.Key)
	missed := min(a.part(missing(a.known, &c.Limit, now)), room)
	flying, number := f.flying.others(c.Key, t)
	local[0].Cost = min(missed+flying, room)
	charged := false
	if local[0].Cost > 0 {
		if snaps, charged, err = f.local.Take(ctx, nil, local, store.Mode{MaxWait: bucket.Forced}); err != nil {
			return err
		}
	}
	if a.held, a.number = 0, number; charged {
		a.held = local[0].Cost - missed
	}
	a.base = bucket.Row{{Limit: a.share, State: baseOf(&snaps[0], charged, now)}}
	a.learn(&a.share, c)
	return nil
}

// follow opens accounts of c's version, with the share l, in the base and the attempt of a.
// A take under l opens one in the local row, so all three refill alike. Each misses at least
// its share of what the store's account of this version was last known to miss.
func (f *Fallback) follow(ctx context.Context, a *Account, c *store.Charge, l *bucket.Limit) error {
	if find(a.base, l) < 0 {
		now := f.now()
		known := min(a.part(own(a.known, &c.Limit, now)), l.Capacity()+l.MaxReserved())
		local := []store.Charge{{Key: c.Key, Limit: *l}}
		snaps, err := f.look(ctx, local)
		if err != nil {
			return err
		}
		// The other local accounts are charged as much. That is too much and never too little.
		if local[0].Cost = known - snaps[0].Missing(); local[0].Cost > 0 {
			if _, _, err := f.local.Take(ctx, nil, local, store.Mode{MaxWait: bucket.Forced}); err != nil {
				return err
			}
		}
		a.base = opened(a.base, l, now, known)
		if a.attempt != nil {
			a.attempt.through = opened(a.attempt.through, l, now, known)
		}
	}
	a.learn(l, c)
	return nil
}

// opened returns the row with an account of l, also if the row is full. A new account misses
// at least known.
func opened(row bucket.Row, l *bucket.Limit, now bucket.Instant, known bucket.Tokens) bucket.Row {
	if find(row, l) >= 0 {
		return row
	}
	s, _ := row.Open(l, now)
	if more := known - l.Peek(s, now, 0, 0).Missing(); more > 0 {
		s, _ = l.Reserve(s, now, more, bucket.Forced)
	}
	return front(append(bucket.Row{{Limit: *l, State: s}}, row...), l)
}

// front returns the row with the account of l in front, as a take leaves the local row,
// and without the accounts beyond the bound.
func front(row bucket.Row, l *bucket.Limit) bucket.Row {
	if i := find(row, l); i > 0 {
		row = append(bucket.Row{row[i]}, slices.Delete(slices.Clone(row), i, i+1)...)
	}
	return row[:min(len(row), bucket.MaxAccounts)]
}

// find returns the index of the account of l in a row, -1 where it has none.
func find(row bucket.Row, l *bucket.Limit) int {
	return slices.IndexFunc(row, func(x bucket.Account) bool { return x.Limit == *l })
}

// own returns the amount that the account of l in a row misses, 0 where it has none.
func own(row bucket.Row, l *bucket.Limit, now bucket.Instant) bucket.Tokens {
	if i := find(row, l); i >= 0 {
		return l.Peek(row[i].State, now, 0, 0).Missing()
	}
	return 0
}

// missing returns the amount that the bucket of l in a row misses.
func missing(row bucket.Row, l *bucket.Limit, now bucket.Instant) bucket.Tokens {
	s, _ := row.Open(l, now)
	return l.Peek(s, now, 0, 0).Missing()
}

// baseOf returns the base of an account that begins with the local bucket in snap. If charged,
// the bucket has just been charged snap.Cost.
//
// A local bucket can have older costs: of takes without an account, or after a reset that
// failed. The state of a sliding log would date them as the newest cost, and hide later
// costs after they have left the window. So the base of a log is without them. While the log has some
// of them, it has all later costs, too, and [account.due] is the cost since the base.
func baseOf(snap *bucket.Snapshot, charged bool, now bucket.Instant) bucket.State {
	if snap.Limit.Algorithm() != bucket.SlidingLog {
		return snap.State(now)
	}
	var base bucket.State
	if charged {
		base, _ = snap.Limit.Reserve(base, now, snap.Cost, bucket.Forced)
	}
	return base
}
