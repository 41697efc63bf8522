// SPDX-License-Identifier: Apache-2.0

package shards

import (
	"context"
	"slices"
	"strings"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/store"
)

// Refund implements [Store]. It refunds to the emptiest shards, regardless of the shards that paid. Together they
// get at most [bucket.Shards.Cancelable]. A refund with an ID lists all shards, so that the store recognizes a retry. A
// store that refunds in parts gives every shard an equal part, because the parts of two attempts may mix.
func (s *Store) Refund(ctx context.Context, refunds []store.Refund, id string) error {
	if !anyRefund(refunds) {
		return s.inner.Refund(ctx, refunds, id)
	}
	charges := make([]store.Charge, len(refunds))
	for i := range refunds {
		charges[i] = refunds[i].Charge
	}
	if err := Check(charges); err != nil {
		return notSpentError("refund", err)
	}
	d := newDivision(charges, store.Mode{}, s.random)
	d.chooseAll()
	look := id == "" || !s.parts
	if look {
		var seen batch
		d.addShards(&seen, false)
		snaps, _, err := s.inner.Take(ctx, nil, seen.charges, store.Mode{DryRun: true})
		if err != nil {
			return notSpentError("refund", err)
		}
		d.record(&seen, snaps)
	}
	if back := d.refunds(refunds, look, id != ""); len(back) > 0 {
		return s.inner.Refund(ctx, back, id)
	}
	return nil
}

func anyRefund(refunds []store.Refund) bool {
	for i := range refunds {
		if isSharded(refunds[i].Charge) {
			return true
		}
	}
	return false
}

// refunds divides refunds among the shards by their deficits, or in equal parts. If all is set, it includes
// shards with a part of 0.
func (d *division) refunds(refunds []store.Refund, seen, all bool) []store.Refund {
	var back []store.Refund
	for i, r := range refunds {
		if !isSharded(r.Charge) {
			r.Shards = 0
			back = append(back, r)
			continue
		}
		p := &d.shares[i]
		if amount := r.Cost; seen {
			if r.Taken != (bucket.Taken{}) {
				amount = p.shards.Cancelable(r.Limit, amount, r.Taken)
			}
			p.shards.SpreadRefund(amount)
		}
		for j, number := range p.numbers {
			part := store.Refund{Charge: store.Charge{Key: shardKey(r.Key, number), Cost: r.Cost / bucket.Tokens(r.Shards)}}
			part.Limit, _ = r.Limit.Shard(number, r.Shards) // no error after Check
			if seen {
				part.Cost = p.shards[j].Cost
			}
			if r.Taken != (bucket.Taken{}) { // refunds only to the charged account
				part.Taken = p.shards[j].TakenNow(part.Cost)
			}
			if part.Cost > 0 || all {
				back = append(back, part)
			}
		}
	}
	slices.SortFunc(back, func(a, b store.Refund) int { return strings.Compare(a.Key, b.Key) })
	return back
}
