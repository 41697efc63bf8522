// SPDX-License-Identifier: Apache-2.0

package outage

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"time"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/store"
)

// maxDenials is how often a charge above the debt limit is lowered before all of it counts as excess. Other
// processes may use up the debt limit between attempts.
const maxDenials = 3

// A flight is a charge of an account's costs to the store. All takes from its key wait for it, so that no take gets tokens that
// have already been spent.
type flight struct {
	done chan struct{} // closed at its end
	err  error         // the reason why costs remain
}

// An attempt is a charge that may have reached the store. It is repeated under its ID, with the rest of its
// amount, until the store has answered or may have dropped the ID.
type attempt struct {
	id      string
	since   bucket.Instant
	through bucket.Row    // the local bucket at its start, without later costs
	share   bucket.Limit  // of the active version at its start
	spent   bucket.Tokens // Account.spent at its start
	maybe   bool
	most    bucket.Tokens // largest amount within the debt limit
	denials int
}

// Recover charges the local costs of the charges' keys to the store, and returns the rest of within. After an
// error, the caller must not send the request to the store.
func (f *Fallback) Recover(ctx context.Context, charges []store.Charge, within time.Duration) (time.Duration, error) {
	if f.ledger.size.Load() == 0 {
		return within, nil
	}
	f.sweep()
	until := time.Now().Add(within)
	for i := range charges {
		if a := f.ledger.find(charges[i].Key); a != nil {
			if err := f.settle(ctx, a, until); err != nil {
				return 0, err
			}
		}
	}
	return timeLeft(until), nil
}

// timeLeft returns the time until then, and at least 1: 0 would mean no time limit.
func timeLeft(until time.Time) time.Duration { return max(time.Until(until), 1) }

// settle charges an account, or waits for another goroutine that does.
func (f *Fallback) settle(ctx context.Context, a *Account, until time.Time) error {
	a.mu.Lock()
	if a.closed {
		a.mu.Unlock()
		return nil
	}
	if flying := a.flight; flying != nil {
		a.mu.Unlock()
		return flying.wait(ctx, until)
	}
	flying := &flight{done: make(chan struct{}), err: errPanic}
	a.flight = flying
	a.mu.Unlock()
	defer func() {
		a.mu.Lock()
		a.flight = nil
		a.mu.Unlock()
		close(flying.done)
	}()

	// Local costs are a debt of the process, not of the caller: other callers wait for this charge, too. The
	// charge therefore does not use the caller's context, which may end or contain a transaction that is rolled
	// back. Mode.Within is its deadline.
	flying.err = f.charge(context.Background(), a, until)
	return flying.err
}

// errPanic is the error of waiting callers if the charge panics.
var errPanic = errors.New("mete: recover: the store panicked")

func (f *flight) wait(ctx context.Context, until time.Time) error {
	timer := time.NewTimer(time.Until(until))
	defer timer.Stop()
	select {
	case <-f.done:
		return f.err
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return &store.Error{Op: "take", Store: "mete", Spent: store.NotSpent, Err: context.DeadlineExceeded}
	}
}

func (f *Fallback) charge(ctx context.Context, a *Account, until time.Time) error {
	for {
		a.mu.Lock()
		if a.closed { // closed by a reset
			a.mu.Unlock()
			return nil
		}
		if v := a.findNeed(); v != nil {
			needy := *v
			a.mu.Unlock()
			if err := f.chargeNeed(ctx, a, needy, until); err != nil {
				return err
			}
			continue
		}
		due, share, err := f.due(ctx, a)
		if err != nil || due == 0 {
			if err == nil {
				f.closeAccount(ctx, a)
			}
			a.mu.Unlock()
			return err
		}
		c, attempt := a.version(share).whole, a.attempt
		c.Cost = min(due, attempt.most)
		a.mu.Unlock()

		mode := store.Mode{MaxWait: bucket.Forced, ID: attempt.id, Within: timeLeft(until)}
		snaps, allowed, err := f.remote.Take(ctx, nil, []store.Charge{c}, mode)

		a.mu.Lock()
		switch {
		case a.closed:
		case err == nil && allowed:
			before := f.seen.Recall(a.key)
			f.recordAnswer(&c, mode, allowed, snaps)
			f.finishAttempt(a, &snaps[0], before, snaps[0].Cost, max(due-c.Cost, 0))
		case err == nil:
			f.lowerAttempt(a, due, &snaps[0])
		case store.Spent(err) == store.NotSpent && !attempt.maybe:
			a.attempt = nil
		default:
			attempt.maybe = true
		}
		a.mu.Unlock()
		if err != nil {
			return err
		}
	}
}

// recordAnswer records the answer to a charge in the memory. No other take of this key by this process is in flight,
// so it numbers the take as if it were sent now. The start of the call is unknown, so the answer denies nothing.
func (f *Fallback) recordAnswer(c *store.Charge, mode store.Mode, allowed bool, snaps []bucket.Snapshot) {
	a := f.seen.Answer(f.seen.StartTake(f.now()), mode, allowed, snaps)
	f.seen.Record(&a, c, &snaps[0], true)
	f.seen.Invalidate(c.Key)
}

// chargeNeed charges the store until the account of v lacks its need. The first take costs nothing: it opens
// the account and shows its deficit, so a charge with a lost answer needs no ID. The counters exclude these
// costs because they have already been charged once.
func (f *Fallback) chargeNeed(ctx context.Context, a *Account, v version, until time.Time) error {
	c := v.whole
	for {
		mode := store.Mode{MaxWait: bucket.Forced, Within: timeLeft(until)}
		snaps, allowed, err := f.remote.Take(ctx, nil, []store.Charge{c}, mode)
		if err != nil {
			return err
		}
		if !allowed {
			c.Cost = 0
		}
		more := min(c.Limit.Peek(v.need, f.now(), 0, 0).Missing()-snaps[0].Missing(), v.due)
		done := c.Cost > 0 || !allowed || more <= 0
		a.mu.Lock()
		if !a.closed {
			f.recordAnswer(&c, mode, allowed, snaps)
		}
		if w := a.version(&v.share); done && w != nil {
			w.need = bucket.State{}
		}
		a.mu.Unlock()
		if done {
			return nil
		}
		c.Cost = more
	}
}

// due returns the cost to charge now under a.attempt, and the share of the version that owes it. The refill
// of the local bucket is a refill of the store's bucket, too. The attempt has the accounts of all versions,
// because a later policy may return to any of them.
func (f *Fallback) due(ctx context.Context, a *Account) (bucket.Tokens, *bucket.Limit, error) {
	now := f.now()
	if !a.hasBucket() {
		return 0, nil, nil
	}
	if t := a.attempt; t != nil {
		due, share := a.due(t.through, now, t.spent)
		if due > 0 && now-t.since < bucket.Instant(store.RetryHorizon/time.Microsecond) {
			return due, share, nil
		} else if due <= 0 {
			a.settle(t)
		}
		a.attempt = nil // the cost may be charged again, but never too little
	}
	through := withAccount(slices.Clone(a.base), &a.share, now, 0)
	for i := range through {
		snaps, err := f.peekLocal(ctx, []store.Charge{{Key: a.key, Limit: through[i].Limit}})
		if err != nil {
			return 0, nil, err
		}
		through[i].State = snaps[0].State(now)
	}
	due, share := a.due(through, now, a.spent)
	if due > 0 {
		id := f.name + strconv.FormatUint(f.ids.Add(1), 10)
		a.attempt = &attempt{id: id, since: now, through: through, share: a.share, spent: a.spent, most: bucket.MaxTokens}
	}
	return max(due, 0), share, nil
}

// due returns the largest amount due under any version of the limit, and the share of that version. A charge under
// one version is charged to all.
func (a *Account) due(row bucket.Row, now bucket.Instant, spent bucket.Tokens) (most bucket.Tokens, share *bucket.Limit) {
	share = &a.share
	most = a.dueOf(share, row, now, spent)
	for i := range a.versions {
		l := &a.versions[i].share
		if due := a.dueOf(l, row, now, spent); due > most {
			most, share = due, l
		}
	}
	return most, share
}

// dueOf returns the cost since base that the local bucket of l in row still lacks, at most the cost since the
// last settled attempt. The bound is needed because the local store reads its clock later than f, and that
// difference is not a cost.
func (a *Account) dueOf(l *bucket.Limit, row bucket.Row, now bucket.Instant, spent bucket.Tokens) bucket.Tokens {
	return min(missingTokens(row, l, now)-missingTokens(a.base, l, now), spent-a.settled)
}

// settle moves base to the start of an attempt. A version that was full in base may be missing from the local
// row. It stays full unless it was active, which may charge too much but never too little.
//
// The state of a sliding log cannot be a base, because it dates all costs at the newest one. It would hide later
// costs after older ones have left the window. An account with a log therefore keeps its base, and only settled
// bounds due. After a policy change this may charge too much, but never too little.
func (a *Account) settle(t *attempt) {
	a.settled = t.spent
	if slices.ContainsFunc(t.through, func(x bucket.Account) bool { return x.Limit.Algorithm() == bucket.AlgorithmSlidingLog }) {
		return
	}
	for i := range t.through {
		if x := &t.through[i]; x.Limit != t.share && missingTokens(a.base, &x.Limit, t.since) == 0 {
			x.State = bucket.State{}
		}
	}
	a.base = t.through
}

// finishAttempt ends an attempt after the store has charged cost and rejected excess. All other versions must
// then lack their due in addition to their earlier deficit. The store may have no account for them, and does
// not charge an empty one.
func (f *Fallback) finishAttempt(a *Account, snap *bucket.Snapshot, before bucket.Row, cost, excess bucket.Tokens) {
	f.counts.charged.Add(int64(cost))
	f.counts.excess.Add(int64(excess))
	a.charged += cost + excess
	now, after := f.now(), f.seen.Recall(a.key)
	for i := range a.versions {
		v := &a.versions[i]
		l, due := &v.whole.Limit, a.dueOf(&v.share, a.attempt.through, now, a.attempt.spent)
		if need := missingOf(before, l, now) + due; due > 0 && *l != snap.Limit && missingOf(after, l, now) < need {
			v.need, _ = l.Reserve(bucket.State{}, now, min(need, l.Capacity()+l.MaxReserved()), bucket.Forced)
			v.due = due
		}
	}
	a.settle(a.attempt)
	a.attempt = nil
}

func (f *Fallback) lowerAttempt(a *Account, due bucket.Tokens, snap *bucket.Snapshot) {
	t := a.attempt
	t.denials++
	t.most = min(t.most-1, snap.Limit.Capacity()+snap.Limit.MaxReserved()-snap.Missing())
	if t.most <= 0 || t.denials > maxDenials {
		f.finishAttempt(a, snap, f.seen.Recall(a.key), 0, due)
	}
}

// closeAccount closes an account that has nothing left to charge. It resets the local bucket, because the next
// outage starts from a newer state of the store.
func (f *Fallback) closeAccount(ctx context.Context, a *Account) {
	f.counts.refilled.Add(int64(max(a.spent-a.charged, 0)))
	f.ledger.close(a)
	_ = f.local.Reset(ctx, []string{a.key}) // after an error, the next share is smaller
}
