// SPDX-License-Identifier: Apache-2.0

package shards

import (
	"slices"
	"time"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/store"
)

// A division is one request to a sharded store: its charges, and what is known
// of the buckets they fall on.
type division struct {
	asked   []store.Charge
	charges []store.Charge // asked, with the costs that are taken
	shares  []share        // shares[i] belongs to charges[i]
	mode    store.Mode
	random  func(n int) int
	wait    time.Duration // how long the shards may make the request wait
	begun   time.Time     // where mode has a Within

	marker   marker
	replayed bool // the marker says that the take was admitted before
}

// A share is what is known of one charge.
type share struct {
	snap    bucket.Snapshot // of a bucket without shards
	numbers []int           // of the shards that are known
	shards  bucket.Shards   // shards[i] is the one of numbers[i]
}

// divide begins a division, with two shards known of every bucket that has them.
func divide(charges []store.Charge, mode store.Mode, random func(n int) int) *division {
	d := &division{
		asked:   charges,
		charges: slices.Clone(charges),
		shares:  make([]share, len(charges)),
		mode:    mode,
		random:  random,
	}
	if mode.Within > 0 {
		d.begun = time.Now()
	}
	if mode.ID != "" && !mode.DryRun {
		d.marker = newMarker(mode, charges)
	}
	for i := range d.shares {
		d.shares[i].know(charges[i].Shards, 2, random)
	}
	return d
}

// within is what is left of the time that the caller waits for all calls together.
func (d *division) within() time.Duration {
	if d.mode.Within <= 0 {
		return 0
	}
	return max(d.mode.Within-time.Since(d.begun), 1)
}

// widen makes every shard known.
func (d *division) widen() {
	for i, c := range d.charges {
		d.shares[i].know(c.Shards, c.Shards, d.random)
	}
}

// know chooses count of n shards. Where equals are to be told apart the first
// wins, so their order is random, too.
func (p *share) know(n, count int, random func(n int) int) {
	if n < 2 || len(p.numbers) == count {
		return
	}
	first, step := random(n), 1
	if count == 2 {
		step += random(n - 1) // any other one
	}
	p.numbers, p.shards = make([]int, count), make(bucket.Shards, count)
	for i := range p.numbers {
		p.numbers[i] = (first + i*step) % n
	}
}

// restore makes the costs those that were asked for.
func (d *division) restore() {
	for i := range d.charges {
		d.charges[i].Cost = d.asked[i].Cost
	}
}

// lower makes the costs what the emptiest bucket holds, and reports whether that
// changed them. It is at most what the marker can remember.
func (d *division) lower() (changed bool) {
	there := bucket.MaxTokens
	if d.marker.on {
		there = maxRemembered
	}
	for i := range d.charges {
		there = min(there, d.remaining(i))
	}
	d.marker.there = there
	for i := range d.charges {
		cost := bucket.UpTo(d.asked[i].Cost, there)
		changed = changed || cost != d.charges[i].Cost
		d.charges[i].Cost = cost
	}
	return changed
}

// remaining is what the bucket of the i'th charge holds.
func (d *division) remaining(i int) bucket.Tokens {
	if !isSharded(d.charges[i]) {
		return d.shares[i].snap.Remaining()
	}
	sum := bucket.Tokens(0)
	for _, shard := range d.shares[i].shards {
		sum += shard.Remaining()
	}
	return sum
}

// spread decides which shards pay, and reports whether they can within maxWait.
func (d *division) spread(maxWait time.Duration) bool {
	able := true
	d.wait = 0
	for i, c := range d.charges {
		if !isSharded(c) || d.shares[i].shards.Spread(c.Cost, 0) {
			continue
		}
		d.wait = maxWait
		able = d.shares[i].shards.Spread(c.Cost, maxWait) && able
	}
	return able
}

// maxWait is how long the take may make the request wait: not at all where only
// shards are charged and hold their parts, so that none lends what another has.
func (d *division) maxWait() time.Duration {
	if d.wait == 0 && !slices.ContainsFunc(d.charges, func(c store.Charge) bool { return !isSharded(c) }) {
		return 0
	}
	return d.mode.MaxWait
}

// othersAllow reports whether the buckets without shards admit their costs.
func (d *division) othersAllow() bool {
	for i, c := range d.charges {
		if !isSharded(c) && !d.shares[i].snap.Allowed {
			return false
		}
	}
	return true
}

// deniedByOthers reports whether a take that was denied would be denied whatever
// the shards hold.
func (d *division) deniedByOthers() bool {
	return !d.replayed && !d.othersAllow() && d.sharesAdmitted()
}

// sharesAdmitted reports whether every shard that was to pay admitted its part.
func (d *division) sharesAdmitted() bool {
	for i, c := range d.charges {
		if isSharded(c) && !d.whole(i, d.mode.MaxWait).Allowed {
			return false
		}
	}
	return true
}

// deny withdraws every part of the shards.
func (d *division) deny() {
	for i := range d.shares {
		for j := range d.shares[i].shards {
			d.shares[i].shards[j].Allowed = false
		}
	}
}

// replay makes everything look admitted. What a reservation has to wait is then
// at least what it was told: until no shard owes. When the first attempt took is not
// known, so a cancellation of a retry gives nothing back.
func (d *division) replay() {
	for i, c := range d.asked {
		if d.mode.UpTo {
			c.Cost = bucket.UpTo(c.Cost, d.marker.there)
		}
		d.charges[i].Cost = c.Cost
		p := &d.shares[i]
		p.snap.Cost, p.snap.Allowed, p.snap.RetryAfter = c.Cost, true, 0
		p.snap = p.snap.Undated()
		for j := range p.shards {
			p.shards[j].Cost, p.shards[j].Allowed = 0, true
			p.shards[j] = p.shards[j].Undated()
		}
		if len(p.shards) > 0 {
			p.shards[0].Cost = c.Cost
		}
	}
}

// whole shows the bucket of the i'th charge.
func (d *division) whole(i int, maxWait time.Duration) bucket.Snapshot {
	c, p := &d.charges[i], &d.shares[i]
	if !isSharded(*c) {
		return p.snap
	}
	if d.mode.DryRun {
		return p.shards.Preview(c.Limit, c.Cost, maxWait)
	}
	return p.shards.Merge(c.Limit, c.Cost, maxWait)
}

// show appends what there is to say about every charge.
func (d *division) show(dst []bucket.Snapshot) []bucket.Snapshot {
	for i := range d.charges {
		dst = append(dst, d.whole(i, d.mode.MaxWait))
	}
	return dst
}
