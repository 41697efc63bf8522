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

// maxDenials is how often a charge that the bucket may not owe is lowered to what
// it may, before all of it is taken for excess: others may be faster.
const maxDenials = 3

// A flight is one charging of an account. All who want to take from its key wait
// for it: none may find tokens that have been spent already.
type flight struct {
	done chan struct{} // closed at its end
	err  error         // why something is left to charge
}

// An attempt is a charge that may have reached the store. It comes again under its
// ID, with what is left of it by then, until the store has answered or might have
// forgotten it.
type attempt struct {
	id      string
	since   bucket.Instant
	through bucket.Row    // the local bucket when it began: later costs are not in it
	share   bucket.Limit  // of the active version when it began
	spent   bucket.Tokens // when it began, as account.spent
	maybe   bool
	most    bucket.Tokens // that may be owed
	denials int
}

// Recover charges to the store what was spent locally of the charges' keys. Where
// it fails, the request is not to be asked for either.
// It returns what is left of within for that.
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
	return left(until), nil
}

// left is the time until then, and never none: 0 would be all the time there is.
func left(until time.Time) time.Duration { return max(time.Until(until), 1) }

// settle charges an account, or waits until somebody else has.
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

	// What was spent locally is a debt of the process and of no caller: others wait for
	// this charge, too. So it does not end with the caller's context, and uses none of
	// its values: a transaction in it could be rolled back. Mode.Within is its deadline.
	flying.err = f.charge(context.Background(), a, until)
	return flying.err
}

// errPanic is what those are told who waited for a charge that did not return.
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

// charge charges an account until nothing is left, and closes it.
func (f *Fallback) charge(ctx context.Context, a *Account, until time.Time) error {
	for {
		a.mu.Lock()
		if a.closed { // by a reset
			a.mu.Unlock()
			return nil
		}
		if v := a.needy(); v != nil {
			needy := *v
			a.mu.Unlock()
			if err := f.raise(ctx, a, needy, until); err != nil {
				return err
			}
			continue
		}
		due, share, err := f.due(ctx, a)
		if err != nil || due == 0 {
			if err == nil {
				f.end(ctx, a)
			}
			a.mu.Unlock()
			return err
		}
		c, attempt := a.version(share).whole, a.attempt
		c.Cost = min(due, attempt.most)
		a.mu.Unlock()

		mode := store.Mode{MaxWait: bucket.Forced, ID: attempt.id, Within: left(until)}
		snaps, allowed, err := f.remote.Take(ctx, nil, []store.Charge{c}, mode)

		a.mu.Lock()
		switch {
		case a.closed:
		case err == nil && allowed:
			before := f.seen.Recall(a.key)
			f.note(&c, mode, allowed, snaps)
			f.charged(a, &snaps[0], before, snaps[0].Cost, max(due-c.Cost, 0))
		case err == nil:
			f.refused(a, due, &snaps[0])
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

// note has the memory remember the answer to a charge. It numbers the take as if it was sent
// now: no other take of this process is in flight. So it cannot tell when the store had not
// been asked yet, and the answer denies nothing.
func (f *Fallback) note(c *store.Charge, mode store.Mode, allowed bool, snaps []bucket.Snapshot) {
	a := f.seen.Answer(f.seen.Ask(f.now()), mode, allowed, snaps)
	f.seen.Note(&a, c, &snaps[0], true)
	f.seen.Doubt(c.Key)
}

// raise charges the store so that the account of v misses what it needs. The first take costs
// nothing: it opens the account, and shows what that misses. So a charge whose answer is lost
// needs no ID. No counter has these costs: they have been charged once already.
func (f *Fallback) raise(ctx context.Context, a *Account, v version, until time.Time) error {
	c := v.whole
	for {
		mode := store.Mode{MaxWait: bucket.Forced, Within: left(until)}
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
			f.note(&c, mode, allowed, snaps)
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

// due returns the cost to charge now, under a.attempt, and the share of the version that is
// due it. A refill of the local bucket is one of the store's bucket, too. The attempt has
// the accounts of all versions, because a later policy may return to any of them.
func (f *Fallback) due(ctx context.Context, a *Account) (bucket.Tokens, *bucket.Limit, error) {
	now := f.now()
	if !a.begun() {
		return 0, nil, nil
	}
	if t := a.attempt; t != nil {
		due, share := a.due(t.through, now, t.spent)
		if due > 0 && now-t.since < bucket.Instant(store.RetryHorizon/time.Microsecond) {
			return due, share, nil
		} else if due <= 0 {
			a.settle(t)
		}
		a.attempt = nil // or else it may be charged once more, and never too little
	}
	through := opened(slices.Clone(a.base), &a.share, now, 0)
	for i := range through {
		snaps, err := f.look(ctx, []store.Charge{{Key: a.key, Limit: through[i].Limit}})
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

// due returns the most that is due of any version, and its share: a charge under one version
// is charged to all.
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

// dueOf returns the cost since base that the local bucket of l in row still misses. Its bound
// is the cost since the last settled attempt: the local store reads its clock later than
// f, and that difference is no cost.
func (a *Account) dueOf(l *bucket.Limit, row bucket.Row, now bucket.Instant, spent bucket.Tokens) bucket.Tokens {
	return min(missing(row, l, now)-missing(a.base, l, now), spent-a.settled)
}

// settle moves base to the beginning of an attempt. The local row may have lacked a version
// that was full in base. Such a version stays full, unless it was active. That charges too
// much and never too little.
//
// The state of a sliding log cannot be a base: it dates all costs as the newest one. It would
// hide later costs after the older ones have left the window. So an account with a log keeps
// its base, and settled alone bounds due: it may charge too much after other policies, and
// never too little.
func (a *Account) settle(t *attempt) {
	a.settled = t.spent
	if slices.ContainsFunc(t.through, func(x bucket.Account) bool { return x.Limit.Algorithm() == bucket.SlidingLog }) {
		return
	}
	for i := range t.through {
		if x := &t.through[i]; x.Limit != t.share && missing(a.base, &x.Limit, t.since) == 0 {
			x.State = bucket.State{}
		}
	}
	a.base = t.through
}

// charged ends an attempt after the store has charged cost and refused excess. All other
// versions shall miss their due in addition to the amount that they missed before. The store
// may have no account for them, and charges none that is empty.
func (f *Fallback) charged(a *Account, snap *bucket.Snapshot, before bucket.Row, cost, excess bucket.Tokens) {
	f.counts.charged.Add(int64(cost))
	f.counts.excess.Add(int64(excess))
	a.charged += cost + excess
	now, after := f.now(), f.seen.Recall(a.key)
	for i := range a.versions {
		v := &a.versions[i]
		l, due := &v.whole.Limit, a.dueOf(&v.share, a.attempt.through, now, a.attempt.spent)
		if need := own(before, l, now) + due; due > 0 && *l != snap.Limit && own(after, l, now) < need {
			v.need, _ = l.Reserve(bucket.State{}, now, min(need, l.Capacity()+l.MaxReserved()), bucket.Forced)
			v.due = due
		}
	}
	a.settle(a.attempt)
	a.attempt = nil
}

// refused lowers an attempt to what the bucket may owe.
func (f *Fallback) refused(a *Account, due bucket.Tokens, snap *bucket.Snapshot) {
	t := a.attempt
	t.denials++
	t.most = min(t.most-1, snap.Limit.Capacity()+snap.Limit.MaxReserved()-snap.Missing())
	if t.most <= 0 || t.denials > maxDenials {
		f.charged(a, snap, f.seen.Recall(a.key), 0, due)
	}
}

// end closes an account of which nothing is left to charge. Its local bucket is of
// no use any more: the next outage knows better.
func (f *Fallback) end(ctx context.Context, a *Account) {
	f.counts.refilled.Add(int64(max(a.spent-a.charged, 0)))
	f.ledger.close(a)
	_ = f.local.Reset(ctx, []string{a.key}) // what stays makes the next share smaller
}
