// SPDX-License-Identifier: Apache-2.0

package shards

import (
	"slices"
	"strings"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/store"
)

// A batch is one call of the inner store: charges in the order of their keys, and the places of their answers.
type batch struct {
	charges []store.Charge
	places  []place
}

// A place is the index of a charge, and of a shard if the charge is sharded.
type place struct{ charge, shard int }

var markerPlace = place{charge: -1}

func (b *batch) add(c store.Charge, at place) {
	i, _ := slices.BinarySearchFunc(b.charges, c, func(x, y store.Charge) int { return strings.Compare(x.Key, y.Key) })
	b.charges = slices.Insert(b.charges, i, c)
	b.places = slices.Insert(b.places, i, at)
}

// addShards adds the chosen shards: all of them without a cost, or the paying ones with their part.
func (d *division) addShards(b *batch, paying bool) {
	for i, c := range d.charges {
		p := &d.shares[i]
		for j, number := range p.numbers {
			if paying && !p.shards[j].Allowed {
				continue
			}
			limit, _ := c.Limit.Shard(number, c.Shards) // no error after Check
			charge := store.Charge{Key: shardKey(c.Key, number), Limit: limit}
			if paying {
				charge.Cost = p.shards[j].Cost
			}
			b.add(charge, place{i, j})
		}
	}
}

func (d *division) addUnsharded(b *batch) {
	for i, c := range d.charges {
		if !isSharded(c) {
			c.Shards = 0
			b.add(c, place{charge: i})
		}
	}
}

func (d *division) addMarker(b *batch) {
	if d.marker.on {
		b.add(d.marker.charge(), markerPlace)
	}
}

func (d *division) record(b *batch, snaps []bucket.Snapshot) {
	for i, at := range b.places {
		switch {
		case at == markerPlace:
			d.replayed = d.marker.decode(snaps[i])
		case isSharded(d.charges[at.charge]):
			d.shares[at.charge].shards[at.shard] = snaps[i]
		default:
			d.shares[at.charge].snap = snaps[i]
		}
	}
}
