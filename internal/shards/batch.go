// SPDX-License-Identifier: Apache-2.0

package shards

import (
	"slices"
	"strings"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/store"
)

// A batch is what a sharded store asks the store behind it: charges in the order
// of their keys, and where the answers belong.
type batch struct {
	charges []store.Charge
	places  []place
}

// A place is a charge of a division, and the index of a known shard of it.
type place struct{ charge, shard int }

// markerPlace is where the marker's answer belongs.
var markerPlace = place{charge: -1}

func (b *batch) add(c store.Charge, at place) {
	i, _ := slices.BinarySearchFunc(b.charges, c, func(x, y store.Charge) int { return strings.Compare(x.Key, y.Key) })
	b.charges = slices.Insert(b.charges, i, c)
	b.places = slices.Insert(b.places, i, at)
}

// addShards adds the known shards: to be looked at, or those that take part with
// what they are to pay or get.
func (d *division) addShards(b *batch, paying bool) {
	for i, c := range d.charges {
		p := &d.shares[i]
		for j, number := range p.numbers {
			if paying && !p.shards[j].Allowed {
				continue
			}
			limit, _ := c.Limit.Shard(number, c.Shards) // Check has seen that it can be
			charge := store.Charge{Key: keyOf(c.Key, number), Limit: limit}
			if paying {
				charge.Cost = p.shards[j].Cost
			}
			b.add(charge, place{i, j})
		}
	}
}

// addOthers adds the charges without shards.
func (d *division) addOthers(b *batch) {
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

// record puts the answers to b where they belong.
func (d *division) record(b *batch, snaps []bucket.Snapshot) {
	for i, at := range b.places {
		switch {
		case at == markerPlace:
			d.replayed = d.marker.read(snaps[i])
		case isSharded(d.charges[at.charge]):
			d.shares[at.charge].shards[at.shard] = snaps[i]
		default:
			d.shares[at.charge].snap = snaps[i]
		}
	}
}
