// SPDX-License-Identifier: Apache-2.0

// Package shards splits a hot bucket over several keys of a store.
package shards

import (
	"context"
	"math/rand/v2"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/store"
)

// A Store divides charges with Shards above 1 over that many keys of the
// store behind it, so that a hot bucket need not be a single row. All others it
// passes on.
//
// Of two shards, chosen at random and looked at together, the fuller one pays, in
// one take with all other charges of the request. Where it does not hold the
// cost both pay together, and where that is not enough all of them do, each what
// it can spare. So a request is denied only where the shards do not hold its cost
// together, seen at one instant, but for at most a thousandth of a token of each
// shard, which rounding hides. It costs two calls of the store, or three where the
// limit is nearly used up; a denial two. Under races there may be more: see
// maxRaces.
//
// # The bound
//
// What n shards admit stays within what the whole limit admits, in any interval:
// each shard keeps to an n'th of the rate and its part of the capacity, and these
// add up exactly.
//
// What they admit less is the refill that a full shard loses while others are not
// full. Let S be what the shards miss together and U what one bucket would miss
// after the same costs. S grows on U only while some shard is full and misses
// nothing; the others miss at most their capacity, so S ≤ (1 − 1/n) of the
// capacity then, and with it S − U. So the shards are never further behind one
// bucket than (1 − 1/n) of its capacity. That is an amount and not a rate: it can
// be lost again only after the one bucket has been full again, and under
// sustained demand no shard is full, nothing is lost, and all of the rate is
// used. It is also the worst case. Two choices keep the shards closer together:
// of 100 tokens and 100/s over 10 shards, asked at random for 120/s, 7 of 3092
// admissions were lost in 30 s, and asked for 80/s none. Asked without a pause,
// 10 shards of 10 tokens admit 100 of 100 before they first refuse. See
// TestSharded_FirstRefusal and TestSharded_UnderUse.
//
// Debts are not set off: of a limit whose shards owe different amounts, which
// only reservations bring about, one that holds tokens pays although another
// owes.
type Store struct {
	inner  store.Store
	random func(n int) int // at least 0 and below n
	parts  bool            // the inner store takes in parts: see mark
}

// maxRaces bounds how often a take is planned anew because what its shards held
// was gone when it came. Then it is denied, as having come too late.
const maxRaces = 8

// New returns a store that takes charges with Shards from inner. What it is asked must
// pass [Check]. It chooses shards by random, which returns a number below its argument;
// nil is [rand.IntN].
func New(inner store.Store, random func(n int) int) *Store {
	if random == nil {
		random = rand.IntN
	}
	return &Store{inner: inner, random: random, parts: store.TakesInParts(inner)}
}

func isSharded(c store.Charge) bool { return c.Shards > 1 }

// Any reports whether any of the charges has shards.
func Any(charges []store.Charge) bool {
	for i := range charges { // without copying any
		if charges[i].Shards > 1 {
			return true
		}
	}
	return false
}

// Take implements [store.Store]. What it shows of an admitted charge is estimated from
// the shards that were looked at; a DryRun and a denial have seen all of them.
func (s *Store) Take(ctx context.Context, dst []bucket.Snapshot, charges []store.Charge, mode store.Mode) ([]bucket.Snapshot, bool, error) {
	if !Any(charges) {
		return s.inner.Take(ctx, dst, charges, mode)
	}
	if err := Check(charges); err != nil {
		return dst, false, failed("take", err)
	}
	d := divide(charges, mode, s.random)
	allowed, err := s.take(ctx, d)
	if err != nil {
		return dst, false, err
	}
	return d.show(dst), allowed, nil
}

func (s *Store) take(ctx context.Context, d *division) (bool, error) {
	if !d.mode.DryRun && !d.mode.UpTo {
		if err := s.look(ctx, d); err != nil {
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
		if err := s.lookAtAll(ctx, d); err != nil {
			return false, err
		}
		if d.replayed {
			d.replay()
			return true, nil
		}
		able := d.spread(d.mode.MaxWait) && d.othersAllow()
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

// look sees what the shards hold that d knows of, and whether the take was
// admitted before.
func (s *Store) look(ctx context.Context, d *division) error {
	var b batch
	d.addShards(&b, false)
	d.addMarker(&b)
	return s.see(ctx, d, &b, store.Mode{DryRun: true})
}

// lookAtAll sees everything at one instant, and settles how much is asked for.
func (s *Store) lookAtAll(ctx context.Context, d *division) error {
	d.widen()
	d.restore()
	for range maxRaces {
		var b batch
		d.addShards(&b, false)
		d.addOthers(&b)
		d.addMarker(&b)
		if err := s.see(ctx, d, &b, store.Mode{DryRun: true, MaxWait: d.mode.MaxWait}); err != nil {
			return err
		}
		if d.replayed || !d.mode.UpTo || !d.lower() {
			break
		}
	}
	return nil
}

func (s *Store) see(ctx context.Context, d *division, b *batch, mode store.Mode) error {
	mode.Within, mode.Fresh = d.within(), d.mode.Fresh
	snaps, _, err := s.inner.Take(ctx, nil, b.charges, mode)
	if err != nil {
		return failed("take", err)
	}
	d.record(b, snaps)
	return nil
}

// pay takes as d was spread. It has not decided where the shards no longer hold
// their parts.
func (s *Store) pay(ctx context.Context, d *division) (decided, allowed bool, err error) {
	var b batch
	d.addShards(&b, true)
	d.addOthers(&b)
	if !s.parts {
		d.addMarker(&b)
	}
	snaps, allowed, err := s.inner.Take(ctx, nil, b.charges, store.Mode{MaxWait: d.maxWait(), Within: d.within(), Fresh: d.mode.Fresh})
	if err != nil {
		return false, false, err
	}
	d.record(&b, snaps)
	if s.parts && d.marker.on && allowed {
		return true, true, s.mark(ctx, d, paid(b.charges, snaps))
	}
	return allowed || d.deniedByOthers(), allowed, nil
}

// Reset implements [store.Store]. Keys of shards are given one by one: see [Keys].
func (s *Store) Reset(ctx context.Context, keys []string) error { return s.inner.Reset(ctx, keys) }

// failed is the failure of something that came before any token was spent.
func failed(op string, err error) error {
	return &store.Error{Op: op, Store: "shards", Spent: store.NotSpent, Err: err}
}
