// SPDX-License-Identifier: Apache-2.0

// Package shards splits hot buckets over several keys of a store.
package shards

import (
	"context"
	"math/rand/v2"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/store"
)

// A Store divides charges with Shards above 1 over that many keys of the inner store. A hot bucket then uses several
// rows. It passes all other charges on unchanged.
//
// It reads two random shards, and the fuller one pays, in one take with the other charges of the request. If that shard does
// not hold the cost, both pay together, and if that is not enough, all shards do. A request is therefore denied only
// if all shards together lacked the cost at one instant. Rounding can hide up to a thousandth of a token per shard.
// A take needs two calls of the store, or three if the limit is nearly used up; a denial needs two. Races may add
// calls: see maxRaces.
//
// # Bound
//
// n shards together admit at most as much as the whole limit in any interval. Each has an n'th of the rate and a
// part of the capacity, and these parts add up exactly.
//
// They admit less because a full shard loses its refill while others are not full. Let S be the total deficit
// of the shards, and U the deficit of a single bucket after the same costs. S grows relative to U only while
// some shard is full. The others lack at most their capacity, so S, and with it S − U, is then at most (1 −
// 1/n) of the capacity. This is an amount, not a rate: it can be lost again only after the single bucket has
// been full. Under sustained demand no shard is full and the whole rate is used.
//
// This is the worst case. Choosing between two shards keeps them closer together. With 100 tokens and 100/s over 10
// shards, random requests at 120/s lost 7 of 3092 admissions in 30 s, and none at 80/s. Without pauses, 10 shards of
// 10 tokens admit 100 of 100 before the first denial. See TestSharded_FirstRefusal and TestSharded_UnderUse.
//
// Debts are not balanced: after reservations, a shard with tokens pays even if another shard is in debt.
type Store struct {
	inner  store.Store
	random func(n int) int // in [0, n)
	parts  bool            // the inner store takes in parts: see setMarker
}

// maxRaces bounds how often a take is planned again because other takes emptied its shards. After that it is denied.
const maxRaces = 8

// New returns a store that takes charges with Shards from inner. Charges must pass [Check]. random chooses
// shards: it returns a number in [0, n), and nil means [rand.IntN].
func New(inner store.Store, random func(n int) int) *Store {
	if random == nil {
		random = rand.IntN
	}
	return &Store{inner: inner, random: random, parts: store.TakesInParts(inner)}
}

func isSharded(c store.Charge) bool { return c.Shards > 1 }

// Any reports whether any charge is sharded.
func Any(charges []store.Charge) bool {
	for i := range charges { // by index, to avoid copies
		if charges[i].Shards > 1 {
			return true
		}
	}
	return false
}

// Take implements [store.Store]. Snapshots of admitted sharded charges are estimates from the chosen shards. A
// dry run and a denial read all shards.
func (s *Store) Take(ctx context.Context, dst []bucket.Snapshot, charges []store.Charge, mode store.Mode) ([]bucket.Snapshot, bool, error) {
	if !Any(charges) {
		return s.inner.Take(ctx, dst, charges, mode)
	}
	if err := Check(charges); err != nil {
		return dst, false, notSpentError("take", err)
	}
	d := newDivision(charges, mode, s.random)
	allowed, err := s.take(ctx, d)
	if err != nil {
		return dst, false, err
	}
	return d.appendSnapshots(dst), allowed, nil
}

func (s *Store) take(ctx context.Context, d *division) (bool, error) {
	if !d.mode.DryRun && !d.mode.UpTo {
		if err := s.peekChosen(ctx, d); err != nil {
			return false, err
		}
		if !d.replayed && d.spread(0) {
			decided, allowed, err := s.pay(ctx, d)
			if decided || err != nil {
				return allowed, err
			}
		}
	}
	for range maxRaces {
		if err := s.peekAll(ctx, d); err != nil {
			return false, err
		}
		if d.replayed {
			d.replay()
			return true, nil
		}
		able := d.spread(d.mode.MaxWait) && d.unshardedAllow()
		if d.mode.DryRun || !able {
			return able, nil
		}
		decided, allowed, err := s.pay(ctx, d)
		if decided || err != nil {
			return allowed, err
		}
	}
	d.deny()
	return false, nil
}

// peekChosen reads the chosen shards, and whether the take was admitted before.
func (s *Store) peekChosen(ctx context.Context, d *division) error {
	var b batch
	d.addShards(&b, false)
	d.addMarker(&b)
	return s.peek(ctx, d, &b, store.Mode{DryRun: true})
}

// peekAll reads all shards at one instant, and sets the costs.
func (s *Store) peekAll(ctx context.Context, d *division) error {
	d.chooseAll()
	d.resetCosts()
	for range maxRaces {
		var b batch
		d.addShards(&b, false)
		d.addUnsharded(&b)
		d.addMarker(&b)
		if err := s.peek(ctx, d, &b, store.Mode{DryRun: true, MaxWait: d.mode.MaxWait}); err != nil {
			return err
		}
		if d.replayed || !d.mode.UpTo || !d.lowerCosts() {
			break
		}
	}
	return nil
}

func (s *Store) peek(ctx context.Context, d *division, b *batch, mode store.Mode) error {
	mode.Within, mode.Fresh = d.remainingTime(), d.mode.Fresh
	snaps, _, err := s.inner.Take(ctx, nil, b.charges, mode)
	if err != nil {
		return notSpentError("take", err)
	}
	d.record(b, snaps)
	return nil
}

// pay takes the parts of d. decided is false if the shards no longer hold their parts.
func (s *Store) pay(ctx context.Context, d *division) (decided, allowed bool, err error) {
	var b batch
	d.addShards(&b, true)
	d.addUnsharded(&b)
	if !s.parts {
		d.addMarker(&b)
	}
	snaps, allowed, err := s.inner.Take(ctx, nil, b.charges, store.Mode{MaxWait: d.maxWait(), Within: d.remainingTime(), Fresh: d.mode.Fresh})
	if err != nil {
		return false, false, err
	}
	d.record(&b, snaps)
	if s.parts && d.marker.on && allowed {
		return true, true, s.setMarker(ctx, d, refundsOf(b.charges, snaps))
	}
	return allowed || d.deniedByUnsharded(), allowed, nil
}

// Reset implements [store.Store]. Pass the keys of all shards: see [Keys].
func (s *Store) Reset(ctx context.Context, keys []string) error { return s.inner.Reset(ctx, keys) }

// notSpentError returns the error of a step before any token was spent.
func notSpentError(op string, err error) error {
	return &store.Error{Op: op, Store: "shards", Spent: store.NotSpent, Err: err}
}
